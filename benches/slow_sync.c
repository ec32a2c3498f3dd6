/* For benches, with LD_PRELOAD: each fsync and fdatasync takes SOJOURN_SYNC_MICROS longer, and is counted in
 * the eight bytes of the file SOJOURN_SYNC_COUNT. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static useconds_t micros;
static _Atomic uint64_t nowhere;
static _Atomic uint64_t *count = &nowhere;

__attribute__((constructor)) static void begin(void) {
    const char *text = getenv("SOJOURN_SYNC_MICROS"), *path = getenv("SOJOURN_SYNC_COUNT");
    micros = text ? (useconds_t)strtoul(text, NULL, 10) : 0;
    int file = path ? open(path, O_RDWR | O_CREAT, 0600) : -1;
    if (file >= 0 && ftruncate(file, sizeof *count) == 0) {
        void *page = mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (page != MAP_FAILED) count = page;
    }
    if (file >= 0) close(file);
}

static int slowly(const char *name, int file) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    atomic_fetch_add(count, 1);
    if (micros > 0) usleep(micros);
    return real(file);
}

int fsync(int file) { return slowly("fsync", file); }
int fdatasync(int file) { return slowly("fdatasync", file); }
