// What the address sanitizer does not report when a program ends. Only where it is on, linked into
// every program.

// Debian's c-ares 1.18 loses some 10 bytes each time that gRPC resolves a host name.
extern "C" const char* __lsan_default_suppressions() { return "leak:libcares.so\n"; }
extern "C" const char* __lsan_default_options() { return "print_suppressions=0"; }
