import jax, jax.numpy as jnp, numpy as np
from carom.tests.integrators.bouncing import *
def test_x():
    np.set_printoptions(precision=16,linewidth=200)
    swap = lambda x, n: jnp.concatenate([x[..., n:], x[..., :n]], -1)
    s=lanes(); a=ran(s); 
    s2=carom.State(swap(s.q,7),swap(s.v,6),s.t)
    b0=ran(s2)
    print("swap diff", abs(np.asarray(swap(b0.q,7)-a.q)).max((1,2)))
    for i in range(40):
        for base,st,nm in ((a,s,"a"),(b0,s2,"b")):
            r=ran(st)
            d=abs(np.asarray(r.q-base.q)).max((1,2))
            if d.any(): print(i,nm,d, [int(np.argmax((np.asarray(r.q-base.q)[k]!=0).any(1))) for k in range(4)])
