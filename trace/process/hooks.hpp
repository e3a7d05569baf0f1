#pragma once

/// Of a function that is put before a library's: visible, called as C.
#define TROUPE_INTERCEPT extern "C" __attribute__((visibility("default")))
