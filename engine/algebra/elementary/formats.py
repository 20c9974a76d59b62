"""The two floating-point formats, and the constants of the functions for each.

Polynomials are minimax fits of relative errors, found by Remez's exchange in 70 digits (Muller, Elementary Functions,
chapter 3). Their first three coefficients were rounded one by one, and the others fitted again each time. Each has the
lowest degree that leaves its error below a tenth of an ulp.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import DTypeLike

Coefficients = tuple[float, ...]


class Format(NamedTuple):
    """bits: of the fraction.  bias: of the exponent.  Numbers in parts are sums, the largest part first: all parts but
    the last have so few bits that their products with the integers, or the chopped numbers, they are multiplied by are
    exact.

    quarter: pi/2, to be multiplied by up to 2^30 (2^13).  right_angle: pi/2, as exactly as two floats can hold it.
    ln2: to be multiplied by exponents.  ln2_half, two_thirds_log2e: ln 2 and 2 / (3 ln 2), the first part chopped.
    exp_most, sinh_most: the last arguments whose results are finite.  exp_least: the first whose result is normal.
    sqrt_half_bits: those of the square root of 1/2.

    The rest are coefficients, the constant first, of polynomials in z = x^2:
    sine: (sin x - x) / x^3, up to pi/4.  cosine: (cos x - 1 + z/2) / z^2, up to pi/4.
    arcsine: (asin x - x) / x^3, up to 1/2.  arctangent: (atan x - x) / x^3, up to 9/16.
    logarithm: (2 atanh x - 2 x) / x^3, and power: (3 atanh(x) / x - 3 - z) / z^2, of logarithms of 2^(-1/2) to 2^(1/2).
    In x itself: exponential: (e^x - 1 - x - x^2 / 2) / x^3, up to ln(2)/2.  cube_root: of 2^(-3/2) to
    2^(3/2), to 7 bits.
    """

    float: DTypeLike
    integer: DTypeLike
    bits: int
    bias: int
    quarter: Coefficients
    right_angle: Coefficients
    ln2: Coefficients
    ln2_half: Coefficients
    two_thirds_log2e: Coefficients
    exp_most: float
    exp_least: float
    sinh_most: float
    sqrt_half_bits: int
    sine: Coefficients
    cosine: Coefficients
    exponential: Coefficients
    logarithm: Coefficients
    arctangent: Coefficients
    arcsine: Coefficients
    power: Coefficients
    cube_root: Coefficients

    @property
    def half_bits(self) -> int:
        """Number of bits that a chopped number lacks: half of them."""
        return (self.bits + 2) // 2

    @property
    def least(self) -> float:
        """The smallest normal number."""
        return 2.0 ** (1 - self.bias)

    @property
    def sign(self) -> int:
        """The bit of the sign, as an integer."""
        return int(jnp.iinfo(self.integer).min)


DOUBLE = Format(
    float=jnp.float64,
    integer=jnp.int64,
    bits=52,
    bias=1023,
    quarter=(1.570796251296997, 7.549789415861596e-08, 5.390302529957765e-15, 3.2820035428735005e-22),
    right_angle=(1.5707963267948966, 6.123233995736766e-17),
    ln2=(0.6931471805598903, 5.497923018708371e-14),
    ln2_half=(0.6931471824645996, -1.904654299957768e-09),
    two_thirds_log2e=(0.9617967009544373, -7.028461650952758e-09),
    exp_most=709.782712893384,
    exp_least=-708.3964185322641,
    sinh_most=710.4758600739439,
    sqrt_half_bits=0x3FE6A09E667F3BCD,
    sine=(
        -0.1666666666666663,
        0.008333333333321846,
        -0.00019841269829388032,
        2.7557313560811923e-06,
        -2.5050739811592417e-08,
        1.5895851209782252e-10,
    ),
    cosine=(
        0.041666666666666595,
        -0.001388888888887334,
        2.4801587289000097e-05,
        -2.75573142164392e-07,
        2.0875705321774365e-09,
        -1.1358746003827547e-11,
    ),
    exponential=(
        0.1666666666666668,
        0.0416666666666654,
        0.008333333333318997,
        0.001388888888935972,
        0.00019841269893956204,
        2.480158678688453e-05,
        2.755723520573723e-06,
        2.755743715453757e-07,
        2.5112499539932762e-08,
        2.093901119302679e-09,
    ),
    logarithm=(
        0.6666666666666735,
        0.3999999999940918,
        0.2857142874367379,
        0.2222219843693708,
        0.18183571611988256,
        0.15313858769302788,
        0.14797924366662701,
    ),
    arctangent=(
        -0.3333333333333331,
        0.1999999999999304,
        -0.1428571428500785,
        0.1111111107479107,
        -0.09090907980592394,
        0.07692285640019406,
        -0.06666366350766714,
        0.05879452553422012,
        -0.05242887413496562,
        0.046583441255623054,
        -0.03960330246829604,
        0.02943110550450187,
        -0.01618530539924187,
        0.0046846943789321084,
    ),
    arcsine=(
        0.1666666666666676,
        0.07499999999970863,
        0.04464285717456488,
        0.030381942709675938,
        0.022372214940464805,
        0.01735161279117147,
        0.013980811780905416,
        0.011398980865745882,
        0.010779880074718792,
        0.0037077849099605084,
        0.021704151902514054,
        -0.020994450146260925,
        0.03262576006155824,
    ),
    power=(
        0.6000000000000341,
        0.4285714285513831,
        0.3333333378193637,
        0.27272676364785203,
        0.23080144828792196,
        0.19885015164096645,
        0.1979650600473789,
    ),
    cube_root=(0.4820452342223045, 0.7289989332809125, -0.24493967530232028, 0.03700307576255369),
)
SINGLE = Format(
    float=jnp.float32,
    integer=jnp.int32,
    bits=23,
    bias=127,
    quarter=(1.5703125, 0.0004837513, 7.5495336e-08, 2.563344e-12),
    right_angle=(1.5707964, -4.371139e-08),
    ln2=(0.69314575, 1.4286068e-06),
    ln2_half=(0.69311523, 3.1946183e-05),
    two_thirds_log2e=(0.96191406, -0.000117368574),
    exp_most=88.72283,
    exp_least=-87.33654,
    sinh_most=89.415985,
    sqrt_half_bits=0x3F3504F3,
    sine=(-0.16666667, 0.008333379, -0.0001985306, 2.8326015e-06),
    cosine=(0.041666646, -0.001388731, 2.4432371e-05),
    exponential=(0.16666666, 0.041666456, 0.008333547, 0.0013935878, 0.00019764875),
    logarithm=(0.66666776, 0.39977574, 0.298712),
    arctangent=(-0.3333331, 0.19998564, -0.14255343, 0.10810076, -0.07521849, 0.032674506),
    arcsine=(0.1666666, 0.07500522, 0.04451375, 0.03183121, 0.0143640395, 0.03760148),
    power=(0.6000023, 0.42820626, 0.3512975),
    cube_root=(0.48204523, 0.72899896, -0.2449397, 0.03700308),
)
