// PyTorch's PrivateUse1 backend over the queues: allocator, devices, streams and events, copies.
// What is not here runs on the CPU by way of a blocking copy, which drains the current stream.
#include "tests/conformance/accelerator/queues.hpp"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <Python.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <algorithm>
#include <map>

namespace fake {
namespace {

constexpr c10::DeviceType type = c10::DeviceType::PrivateUse1;

// Of each thread, as in CUDA.
thread_local int current_device = 0;
thread_local std::array<int, device_count> current_streams{};

device_queues& queues() {
  return device_queues::all();
}

int checked(c10::DeviceIndex index) {
  if (index == -1)
    return current_device;
  TORCH_CHECK(index >= 0 && index < device_count, "there is no fake:", static_cast<int>(index));
  return index;
}

stream_name current_stream(int device) {
  return {device, current_streams.at(device)};
}

stream_name name_of(const c10::Stream& stream) {
  return {checked(stream.device_index()), static_cast<int>(stream.id())};
}

c10::Stream stream_of(stream_name name) {
  const c10::Device device(type, static_cast<c10::DeviceIndex>(name.device));
  return c10::Stream(c10::Stream::UNSAFE, device, name.number);
}

// Runs what waits without Python's lock: a copy in a queue may need it to go on.
template<class Function>
void unlocked(const Function& function) {
  struct python_lock {
    PyThreadState* state = PyGILState_Check() != 0 ? PyEval_SaveThread() : nullptr;
    ~python_lock() {
      if (state != nullptr)
        PyEval_RestoreThread(state);
    }
  };
  const python_lock given_back;
  function();
}

void drain(stream_name stream) {
  unlocked([stream] { queues().drain(stream); });
}

//------------------------------------------------------------------------------------------ memory

void release(void* context) {
  queues().release(static_cast<block*>(context));
}

struct device_memory final : c10::Allocator {
  c10::DataPtr allocate(std::size_t size) override {
    const c10::Device device(type, static_cast<c10::DeviceIndex>(current_device));
    if (size == 0)
      return {nullptr, device};
    block* made = queues().allocate(current_stream(current_device), size);
    return {made->bytes, made, &release, device};
  }
  void copy_data(void* to, const void* from, std::size_t size) const override {
    drain(current_stream(current_device));
    std::memcpy(to, from, size);
  }
};

// Host memory that the device may be given: known by its addresses.
struct pinned_memory final : c10::Allocator {
  static pinned_memory& all() {
    static auto* const one = new pinned_memory;
    return *one;
  }
  c10::DataPtr allocate(std::size_t size) override {
    void* bytes = nullptr;
    TORCH_CHECK(::posix_memalign(&bytes, 4096, size + 1) == 0, "no memory to pin");
    const std::lock_guard lock(mutex_);
    sizes_[static_cast<const char*>(bytes)] = size + 1;
    return {bytes, bytes, &unpin, c10::DeviceType::CPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &unpin; }
  void copy_data(void* to, const void* from, std::size_t size) const override {
    std::memcpy(to, from, size);
  }
  bool holds(const void* address) {
    const std::lock_guard lock(mutex_);
    const auto after = sizes_.upper_bound(static_cast<const char*>(address));
    if (after == sizes_.begin())
      return false;
    const auto& [bytes, size] = *std::prev(after);
    return address < bytes + size;
  }

 private:
  static void unpin(void* bytes) {
    {
      const std::lock_guard lock(all().mutex_);
      all().sizes_.erase(static_cast<const char*>(bytes));
    }
    std::free(bytes);
  }

  std::mutex mutex_;
  std::map<const char*, std::size_t> sizes_;
};

device_memory memory;

//----------------------------------------------------------------------------- devices and streams

struct guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return fake::type; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const int before = std::exchange(current_device, checked(device.index()));
    return {fake::type, static_cast<c10::DeviceIndex>(before)};
  }
  c10::Device getDevice() const override {
    return {fake::type, static_cast<c10::DeviceIndex>(current_device)};
  }
  void setDevice(c10::Device device) const override { current_device = checked(device.index()); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.index() >= 0 && device.index() < device_count)
      current_device = device.index();
  }
  c10::DeviceIndex deviceCount() const noexcept override { return fake::device_count; }

  c10::Stream getStream(c10::Device device) const override {
    return stream_of(current_stream(checked(device.index())));
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return stream_of({checked(device.index()), 0});
  }
  c10::Stream getNewStream(c10::Device device, int /*priority*/) const override {
    return stream_of(queues().next_stream(checked(device.index())));
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool /*high*/) const override {
    return getNewStream(device, 0);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const stream_name now = name_of(stream);
    return stream_of({now.device, std::exchange(current_streams.at(now.device), now.number)});
  }
  bool queryStream(const c10::Stream& stream) const override {
    return queues().idle(name_of(stream));
  }
  void synchronizeStream(const c10::Stream& stream) const override { drain(name_of(stream)); }
  void synchronizeDevice(const c10::DeviceIndex index) const override {
    unlocked([index] { queues().drain(checked(index)); });
  }
  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    if (data.get_deleter() == &release)
      queues().used_on(*static_cast<fake::block*>(data.get_context()), name_of(stream));
  }

  // An event is its latest mark.
  using event = std::shared_ptr<mark>;
  void record(void** made, const c10::Stream& stream, const c10::DeviceIndex /*index*/,
              const c10::EventFlag /*flag*/) const override {
    if (*made == nullptr)
      *made = new event;
    *static_cast<event*>(*made) = queues().record(name_of(stream));
  }
  void destroyEvent(void* made, const c10::DeviceIndex /*index*/) const noexcept override {
    delete static_cast<event*>(made);
  }
  void block(void* made, const c10::Stream& stream) const override {
    queues().block_until(name_of(stream), *static_cast<event*>(made));
  }
  bool queryEvent(void* made) const override {
    return queues().passed(**static_cast<event*>(made));
  }
  void synchronizeEvent(void* made) const override {
    const event awaited = *static_cast<event*>(made);
    unlocked([&awaited] { queues().synchronize(*awaited); });
  }
};

struct hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex /*index*/) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return device_count; }
  c10::DeviceIndex getCurrentDevice() const override {
    return static_cast<c10::DeviceIndex>(current_device);
  }
  void setCurrentDevice(c10::DeviceIndex index) const override { current_device = checked(index); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    return static_cast<c10::DeviceIndex>(std::exchange(current_device, checked(index)));
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return exchangeDevice(index);
  }
  bool isPinnedPtr(const void* address) const override {
    return pinned_memory::all().holds(address);
  }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned_memory::all(); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, std::size_t size) const override {
    const c10::DeviceGuard on(storage.device());
    c10::DataPtr grown = memory.allocate(size);
    if (const std::size_t kept = std::min(size, storage.nbytes()); kept != 0)
      memory.copy_data(grown.get(), storage.data(), kept);
    storage.set_data_ptr_noswap(std::move(grown));
    storage.set_nbytes(size);
  }
};

//--------------------------------------------------------------------------------------- operators

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout> /*layout*/, std::optional<at::Device> device,
                 std::optional<bool> /*pinned*/, std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard on(device.value_or(c10::Device(type)));
  return at::detail::empty_generic(size, &memory,
                                   c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride,
                         std::optional<at::ScalarType> dtype, std::optional<at::Layout> /*layout*/,
                         std::optional<at::Device> device, std::optional<bool> /*pinned*/) {
  const c10::DeviceGuard on(device.value_or(c10::Device(type)));
  return at::detail::empty_strided_generic(size, stride, &memory,
                                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           c10::dtype_or_default(dtype));
}

// The same bytes as a tensor of the CPU's, which owns nothing.
at::Tensor bytes_of(const at::Tensor& tensor) {
  return at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(),
                       at::TensorOptions().dtype(tensor.scalar_type()));
}

void drain_current_of(const at::Tensor& tensor) {
  if (tensor.device().type() == type)
    drain(current_stream(tensor.device().index()));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  if (from.numel() == 0 || to.numel() == 0)
    return to;
  if (non_blocking && from.device().type() == type && to.is_cpu()) {
    // Where it goes is kept until it is there, as CUDA keeps pinned memory; what it reads is not.
    queues().copy(current_stream(from.device().index()),
                  [source = bytes_of(from), target = bytes_of(to), kept = to.storage()] {
                    target.copy_(source);
                  });
    return to;
  }
  drain_current_of(from);
  drain_current_of(to);
  bytes_of(to).copy_(bytes_of(from));
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  to.resize_(from.sizes());
  return copy_from(from, to, false);
}

// PyTorch allocates on the current device, so it has to be the tensor's.
const at::Tensor& resize(const at::Tensor& self, at::IntArrayRef size,
                         std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard on(self.device());
  drain_current_of(self);
  return at::native::resize_(self, size, format);
}

at::Tensor& set_storage_part(at::Tensor& self, at::Storage source, std::int64_t offset,
                             at::IntArrayRef size, at::IntArrayRef stride) {
  const c10::DeviceGuard on(self.device());
  return at::native::set_storage_cpu_(self, std::move(source), offset, size, stride);
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source) {
  const auto size = static_cast<std::int64_t>(source.nbytes() / self.dtype().itemsize());
  return set_storage_part(self, std::move(source), 0, {size}, {});
}

at::Tensor& set_nothing(at::Tensor& self) {
  const c10::DeviceGuard on(self.device());
  const c10::Storage none(c10::Storage::use_byte_size_t(), 0, memory.allocate(0), &memory, true);
  return set_storage_part(self, none, 0, {0}, {});
}

void record_stream(at::Tensor& self, at::Stream stream) {
  guard().recordDataPtrOnStream(self.storage().data_ptr(), stream);
}

void on_the_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  at::native::cpu_fallback(op, stack);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&on_the_cpu>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("as_strided", &at::native::as_strided_tensorimpl);
  library.impl("view", &at::native::view);
  library.impl("view_as_complex", &at::native::view_as_complex);
  library.impl("view_as_real", &at::native::view_as_real);
  library.impl("unfold", &at::native::unfold);
  library.impl("_reshape_alias", &at::native::_reshape_alias);
  library.impl("resize_", &resize);
  library.impl("_copy_from", &copy_from);
  library.impl("_copy_from_and_resize", &copy_from_and_resize);
  library.impl("set_", &set_nothing);
  library.impl("set_.source_Storage", &set_storage);
  library.impl("set_.source_Storage_storage_offset", &set_storage_part);
  library.impl("set_.source_Tensor", &at::native::set_tensor_);
  library.impl("record_stream", &record_stream);
}

// What steers it; see fake.py.
TORCH_LIBRARY(fake, library) {
  library.def("hold(int device, bool held) -> ()", [](std::int64_t device, bool held) {
    queues().hold(static_cast<int>(device), held);
  });
  library.def("entries(int device) -> int",
              [](std::int64_t device) { return queues().entries(static_cast<int>(device)); });
  library.def("until_waited_for(int device) -> ()", [](std::int64_t device) {
    unlocked([device] { queues().until_waited_for(static_cast<int>(device)); });
  });
  library.def("fail_next_copy() -> ()", [] { queues().fail_next_copy(); });
}

REGISTER_ALLOCATOR(type, &memory)
C10_REGISTER_GUARD_IMPL(PrivateUse1, guard)

const bool registered = [] {
  static hooks ours;
  at::RegisterPrivateUse1HooksInterface(&ours);
  return true;
}();

} // namespace
} // namespace fake
