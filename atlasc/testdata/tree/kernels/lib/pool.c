__attribute__((visibility("default"))) int atlas_pool_threads(void) { return 1; }
