@0xb7d40c6e93a1f825;
# With racks.

struct Neighbour {
  node @0 :Text;
  address @1 :Text;
  port @2 :UInt16;
  rack @3 :Text;
}
