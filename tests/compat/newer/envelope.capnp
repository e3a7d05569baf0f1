@0xc5d8f2f4b1a06e31;
# With a trace that follows a message through the system.

struct Envelope {
  version @0 :UInt16;
  sender @1 :Text;
  epoch @2 :UInt64;
  generation @3 :UInt64;
  sequence @4 :UInt64;
  correlation @5 :UInt64;
  kind @6 :UInt64;
  body @7 :AnyPointer;
  trace @8 :Trace;
  urgent @9 :Bool;

  struct Trace {
    id @0 :UInt64;
    hops @1 :List(Text);
  }
}
