"""early_stop: plain training, stopped where it is best on the validation set.

Idea    Networks learn what is right before they memorise what is wrong. The trusted samples tell when to stop: what any
        method has to beat where there are some.
Told    Trusted samples, to stop by.
Knobs   None.
Cost    None: it is read off the training of uniform, at the stage whose end is best on the validation set.
"""

from autoweight.methods.uniform import Uniform

EARLY_STOP = "early_stop"


class EarlyStop(Uniform):
    """Weights of 1; `compare` reads its scores off the training of uniform."""
