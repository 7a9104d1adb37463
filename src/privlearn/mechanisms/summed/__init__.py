"""Several holders: noisy sums of what each computes."""
