@0xc5d8f2f4b1a06e31;
# Before questions and answers were joined by `correlation`.

struct Envelope {
  version @0 :UInt16;
  sender @1 :Text;
  epoch @2 :UInt64;
  generation @3 :UInt64;
  sequence @4 :UInt64;
  unused @5 :UInt64;
  kind @6 :UInt64;
  body @7 :AnyPointer;
}
