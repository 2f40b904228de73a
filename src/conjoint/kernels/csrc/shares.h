/* Eq. 6 and the epsilon of Eq. 9: a softmax of two, and a sigmoid, per head. A handful of numbers: one call here is
 * cheaper than the dozen small operations it stands for. Logits are [groups, 2] and [groups], with one group for all
 * heads or one per head; NULL: absent. */

/* 1 / (1 + exp(-x)). */
static double logistic(double x) { return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x)); }

EXPORT void NAME(shares)(const real *mix_logit, const real *eps_logit, ix groups, ix heads, real *mix, real *eps,
                         int threads) {
    (void)threads;
    for (ix h = 0; h < heads; h++) {
        ix g = groups == heads ? h : 0;
        if (mix_logit != NULL) {
            double of_feature = logistic((double)mix_logit[2 * g] - (double)mix_logit[2 * g + 1]);
            mix[2 * h] = (real)of_feature, mix[2 * h + 1] = (real)(1 - of_feature);
        }
        if (eps_logit != NULL) eps[h] = (real)logistic((double)eps_logit[g]);
    }
}

/* From the gradients of the shares, d_mix [2, heads] and d_eps [heads], to those of the logits. */
EXPORT void NAME(shares_backward)(const real *mix, const real *eps, const real *d_mix, const real *d_eps, ix groups,
                                  ix heads, real *d_mix_logit, real *d_eps_logit, int threads) {
    (void)threads;
    if (d_mix_logit != NULL) clear(d_mix_logit, 2 * groups);
    if (d_eps_logit != NULL) clear(d_eps_logit, groups);
    for (ix h = 0; h < heads; h++) {
        ix g = groups == heads ? h : 0;
        if (d_mix_logit != NULL) {
            real pull = mix[2 * h] * mix[2 * h + 1] * (d_mix[h] - d_mix[heads + h]);
            d_mix_logit[2 * g] += pull, d_mix_logit[2 * g + 1] -= pull;
        }
        if (d_eps_logit != NULL) d_eps_logit[g] += d_eps[h] * eps[h] * (1 - eps[h]);
    }
}
