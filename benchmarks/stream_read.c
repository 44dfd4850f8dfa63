/* Read a buffer with two threads, as fast as C does: the yardstick of the bandwidth probe.
   gcc -O3 -march=native -pthread stream_read.c -o stream_read; prints the best bytes/s. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define BYTES (1UL << 30)
#define PASSES 12
#define THREADS 2

static float *buffer;
static volatile float sink[THREADS * 16];

static void *read_half(void *arg) {
    size_t index = (size_t)(uintptr_t)arg, count = BYTES / sizeof(float) / THREADS;
    const float *from = buffer + index * count;
    float sums[64] = {0};
    for (size_t i = 0; i < count; i += 64)
        for (int j = 0; j < 64; j++) sums[j] += from[i + j];
    float total = 0;
    for (int j = 0; j < 64; j++) total += sums[j];
    sink[index * 16] = total;
    return NULL;
}

int main(void) {
    buffer = aligned_alloc(2UL << 20, BYTES);
    madvise(buffer, BYTES, MADV_HUGEPAGE);
    for (size_t i = 0; i < BYTES / sizeof(float); i++) buffer[i] = 0.5f;
    double best = 0;
    for (int pass = 0; pass < PASSES; pass++) {
        struct timespec a, b;
        pthread_t threads[THREADS];
        clock_gettime(CLOCK_MONOTONIC, &a);
        for (size_t t = 0; t < THREADS; t++)
            pthread_create(&threads[t], NULL, read_half, (void *)(uintptr_t)t);
        for (size_t t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
        clock_gettime(CLOCK_MONOTONIC, &b);
        double rate = BYTES / ((b.tv_sec - a.tv_sec) + (b.tv_nsec - a.tv_nsec) * 1e-9);
        if (rate > best) best = rate;
    }
    printf("%.0f\n", best);
    return 0;
}
