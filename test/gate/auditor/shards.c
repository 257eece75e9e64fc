#include "auditor.h"
void judge_shards(const History *h, const Tables *t) {(void)h;(void)t;}
