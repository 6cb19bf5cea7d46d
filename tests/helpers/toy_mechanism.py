"""A mechanism of someone else's: geometric noise of whole scales, in one file."""

import math

import numpy as np

from hushtable.privacy import Cost
from hushtable.privacy.mechanisms import Mechanism


class Geometric(Mechanism):
    name = "toy-geometric"
    words = "geometric noise, of whole scales only"
    pure = True
    excess_kurtosis = 3.0

    def cost(self, sensitivity, scale):
        epsilon = sensitivity.l1 / scale
        return Cost(rho=epsilon**2 / 2.0, pure=epsilon)

    def scale(self, sensitivity, budget):
        return float(math.ceil(sensitivity.l1 / budget))

    def sampler(self, opendp, domain, scale):
        return opendp.m.make_geometric(domain, opendp.l1_distance(T="i64"), scale=scale)

    def noise_sd(self, scale):
        q = math.exp(-1.0 / scale)
        return math.sqrt(2.0 * q) / (1.0 - q)

    def log_ratio(self, scale, x, added):
        return (np.abs(x) - np.abs(x - added)) / scale
