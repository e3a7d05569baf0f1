#pragma once

#include "messages/envelope.capnp.h"
#include "runtime/base/ids.hpp"
#include "runtime/base/invariant.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/base/result.hpp"

#include <capnp/message.h>
#include <capnp/schema.h>
#include <capnp/serialize.h>
#include <kj/array.h>

#include <memory>
#include <string>
#include <utility>

namespace troupe::messages {

/// Major version of the protocol; a peer with another one is refused.
inline constexpr std::uint16_t protocol_version = 1;
/// What a node understands within that version. 1: its seat instead of a whole world (Prepare).
inline constexpr std::uint16_t protocol_revision = 1;

/// The envelope's fields besides kind and body; see envelope.capnp.
struct stamp {
  std::string sender;
  term follows{};
  generation about{};
  std::uint64_t sequence = 0;
  std::uint64_t correlation = 0;
};

namespace detail {

/// A whole message, checked or built by us, never changed again. `words` is its form on the wire
/// and in the journal.
struct sealed {
  kj::Array<capnp::word> words;
  stamp envelope;
  std::uint64_t kind = 0;
};

using sealed_ptr = std::shared_ptr<const sealed>;

/// For words that passed the border, or that we built. No traversal limit: the border has bounded
/// how much one reading comes to, and a reader may read as often as it likes.
capnp::ReaderOptions reader_options();

/// The most that a message holds besides its body: segment table, root, envelope and sender.
inline constexpr std::uint64_t envelope_words = 32 + limits::name_max / sizeof(capnp::word);

sealed_ptr seal(capnp::MessageBuilder& builder, const stamp& envelope, std::uint64_t kind);

void write_envelope(Envelope::Builder out, const stamp& envelope, std::uint64_t kind);

} // namespace detail

/// One reading of a message. Owns what it reads; make a fresh one per use and never hand it to
/// another thread.
template<class T>
class view {
 public:
  explicit view(detail::sealed_ptr from)
      : from_(std::move(from)), reader_(from_->words.asPtr(), detail::reader_options()),
        root_(reader_.getRoot<Envelope>().getBody().template getAs<T>()) {}

  typename T::Reader* operator->() { return &root_; }
  typename T::Reader& operator*() { return root_; }

 private:
  detail::sealed_ptr from_;
  capnp::FlatArrayMessageReader reader_;
  typename T::Reader root_;
};

template<class T>
class msg;

/// A message whose kind is known only at run time, as it comes off a link or out of the journal.
/// A default-constructed one is empty and may only be assigned to.
class any_msg {
 public:
  any_msg() = default;
  explicit any_msg(detail::sealed_ptr from) : from_(std::move(from)) {}

  explicit operator bool() const { return from_ != nullptr; }
  const stamp& envelope() const { return from_->envelope; }
  std::uint64_t kind() const { return from_->kind; }

  template<class T>
  bool is() const {
    return from_ && from_->kind == capnp::typeId<T>();
  }

  /// Precondition: is<T>().
  template<class T>
  msg<T> as() const {
    invariant(is<T>(), "message read as another kind");
    return msg<T>(from_);
  }

  /// The bytes, as a frame's payload or a journal record.
  kj::ArrayPtr<const capnp::word> words() const { return from_->words.asPtr(); }
  std::size_t size_bytes() const { return from_->words.size() * sizeof(capnp::word); }

 private:
  detail::sealed_ptr from_;
};

/// An immutable, checked message of kind `T`. Copying copies a pointer.
template<class T>
class msg {
 public:
  msg() = default;
  explicit msg(detail::sealed_ptr from) : from_(std::move(from)) {}

  explicit operator bool() const { return from_ != nullptr; }
  view<T> read() const {
    invariant(from_ != nullptr, "an empty message was read");
    return view<T>(from_);
  }
  const stamp& envelope() const { return from_->envelope; }
  any_msg any() const { return any_msg(from_); }

 private:
  detail::sealed_ptr from_;
};

/// Builds a message; `fill` receives the body's builder.
template<class T, class Fill>
msg<T> build(const stamp& envelope, Fill&& fill) {
  capnp::MallocMessageBuilder builder;
  auto root = builder.initRoot<Envelope>();
  detail::write_envelope(root, envelope, capnp::typeId<T>());
  std::forward<Fill>(fill)(root.getBody().template initAs<T>());
  return msg<T>(detail::seal(builder, envelope, capnp::typeId<T>()));
}

/// For actors of one process, where no link counts and no older master can be meant.
template<class T, class Fill>
msg<T> local(const std::string& sender, Fill&& fill) {
  return build<T>(stamp{sender}, std::forward<Fill>(fill));
}
template<class T>
msg<T> local(const std::string& sender) {
  return local<T>(sender, [](auto) {});
}

/// A copy under this envelope, as `change` leaves it, which receives the body's builder. What it
/// does not set stays, also in fields that only a newer build knows. `room`: the words that it
/// adds.
template<class T, class Change>
msg<T> altered(const msg<T>& m, const stamp& envelope, Change&& change, std::uint64_t room = 0) {
  auto body = m.read();
  // In one segment: pointers between segments would make the copy longer than the border counted.
  const auto size = body->totalSize().wordCount + detail::envelope_words + room;
  capnp::MallocMessageBuilder builder(static_cast<unsigned>(size));
  auto root = builder.initRoot<Envelope>();
  detail::write_envelope(root, envelope, capnp::typeId<T>());
  root.getBody().template setAs<T>(*body);
  std::forward<Change>(change)(root.getBody().template getAs<T>());
  return msg<T>(detail::seal(builder, envelope, capnp::typeId<T>()));
}

/// The same message under another correlation: how a proxy puts a question on a link.
template<class T>
msg<T> with_correlation(const msg<T>& m, std::uint64_t correlation) {
  auto envelope = m.envelope();
  envelope.correlation = correlation;
  return altered(m, envelope, [](auto) {});
}

/// Writes an actor's messages: knows its name and term, counts its sequence.
class author {
 public:
  explicit author(std::string name, term follows = {})
      : name_(std::move(name)), follows_(follows) {}

  void follow(term t) { follows_ = t; }
  term following() const { return follows_; }
  const std::string& name() const { return name_; }

  template<class T, class Fill>
  msg<T> write(generation about, Fill&& fill) {
    return build<T>(stamp{name_, follows_, about, ++sequence_, 0}, std::forward<Fill>(fill));
  }

  template<class T, class Fill>
  msg<T> answer(const stamp& question, Fill&& fill) {
    return build<T>(stamp{name_, follows_, question.about, ++sequence_, question.correlation},
                    std::forward<Fill>(fill));
  }

 private:
  std::string name_;
  term follows_;
  std::uint64_t sequence_ = 0;
};

/// The border: any bytes give a message or an error, never an exception. Checks size, version,
/// structure, every pointer of the body against the schema of its kind, traversal, nesting and text
/// lengths. A kind this build does not know is admitted unread (a newer peer may send it); the
/// dispatcher counts it and drops it.
result<any_msg> admit(kj::Array<capnp::word> words);

/// As above, for bytes of any alignment; copies them once the length has been judged.
result<any_msg> admit(const void* bytes, std::size_t size);

} // namespace troupe::messages
