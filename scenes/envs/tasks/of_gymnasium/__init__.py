"""The tasks of gymnasium's MuJoCo environments, version 5: its files, observations, rewards and ends."""
