@0xe1b7c9d05a3f4826;
# A field became something else.

struct Prepared {
  node @0 :UInt64;
  storePort @1 :UInt16;
}
