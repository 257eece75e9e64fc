#include "spec.h"
void judge_told(const History *h, const Interleaving *in, const Tables *t) {(void)h;(void)in;(void)t;}
