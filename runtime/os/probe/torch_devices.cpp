#include "runtime/os/probe/torch_devices.hpp"

#include "runtime/os/probe/torch_script.hpp"
#include "runtime/os/process/unique_fd.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::os {

namespace json = boost::json;

namespace {

struct torch_words {
  std::string device, plugin, python;
};

result<torch_words> words_of(const std::string& how) {
  const auto first = how.find(',');
  const auto second = first == std::string::npos ? first : how.find(',', first + 1);
  if (second == std::string::npos || first == 0 || second + 1 == how.size())
    return failure(errc::invalid,
                   fmt::format("{}={}: DEVICE,PLUGIN,PYTHON is expected, as npu,torch_npu,python3",
                               torch_devices_variable, how));
  return torch_words{how.substr(0, first), how.substr(first + 1, second - first - 1),
                     how.substr(second + 1)};
}

double number_in(const json::object& of, const char* name) {
  const auto* found = of.if_contains(name);
  return found && found->is_number() ? found->to_number<double>() : 0;
}

/// A Python process that is asked by lines.
class torch_process {
 public:
  explicit torch_process(torch_words words) : words_(std::move(words)) {}
  torch_process(const torch_process&) = delete;
  torch_process& operator=(const torch_process&) = delete;
  ~torch_process() {
    if (pid_ <= 0)
      return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  const torch_words& words() const { return words_; }

  /// It answers once it has imported all.
  result<void> start() {
    std::array<int, 2> in{-1, -1}, out{-1, -1};
    if (::pipe2(in.data(), O_CLOEXEC) != 0)
      return failure(errc::unavailable, std::strerror(errno));
    unique_fd questions(in[0]);
    questions_ = unique_fd(in[1]);
    if (::pipe2(out.data(), O_CLOEXEC) != 0)
      return failure(errc::unavailable, std::strerror(errno));
    answers_ = unique_fd(out[0]);
    const unique_fd answers(out[1]);
    ::signal(SIGPIPE, SIG_IGN);
    const std::array<const char*, 6> argv{words_.python.c_str(), "-c",
                                          torch_script,          words_.device.c_str(),
                                          words_.plugin.c_str(), nullptr};
    pid_ = ::fork();
    if (pid_ < 0)
      return failure(errc::unavailable, std::strerror(errno));
    if (pid_ == 0)
      become(argv, questions.get(), answers.get());
    return {};
  }

  result<json::object> next_answer() {
    std::size_t end = 0;
    while ((end = received_.find('\n')) == std::string::npos) {
      std::array<char, 4'096> bytes{};
      const auto got = ::read(answers_.get(), bytes.data(), bytes.size());
      if (got < 0 && errno == EINTR)
        continue;
      if (got <= 0 || received_.size() > answer_max)
        return failure(errc::unavailable,
                       fmt::format("{} has ended without an answer, in which devices are looked at "
                                   "through PyTorch",
                                   words_.python));
      received_.append(bytes.data(), static_cast<std::size_t>(got));
    }
    boost::system::error_code wrong;
    auto answer = json::parse(std::string_view(received_).substr(0, end), wrong);
    received_.erase(0, end + 1);
    if (wrong || !answer.is_object())
      return failure(errc::invalid, "what PyTorch's process answers is no JSON object");
    if (const auto* said = answer.as_object().if_contains("error"); said && said->is_string())
      return failure(errc::unavailable, std::string(said->as_string()));
    return std::move(answer.as_object());
  }

  result<json::object> ask(const json::array& question) {
    const auto line = json::serialize(question) + "\n";
    // An end of the process is seen by the answer that does not come.
    [[maybe_unused]] const auto sent = ::write(questions_.get(), line.data(), line.size());
    return next_answer();
  }

 private:
  static constexpr std::size_t answer_max = 1 << 20;

  [[noreturn]] static void become(const std::array<const char*, 6>& argv, int input, int output) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // `output` may be 3 already, which has to lose its mark then.
    if (::dup2(input, STDIN_FILENO) < 0 ||
        (output == 3 ? ::fcntl(3, F_SETFD, 0) : ::dup2(output, 3)) < 0)
      ::_exit(126);
    ::execvp(argv[0], const_cast<char* const*>(argv.data()));
    ::_exit(127);
  }

  torch_words words_;
  unique_fd questions_, answers_;
  std::string received_;
  pid_t pid_ = -1;
};

class devices_by_torch final : public probe::device_port {
 public:
  explicit devices_by_torch(std::unique_ptr<torch_process> torch) : torch_(std::move(torch)) {}

  bool has_accelerators() const override { return true; }

  result<std::vector<probe::device_facts>> list() override {
    const auto answer = torch_->ask({"list"});
    if (!answer)
      return tl::make_unexpected(answer.error());
    std::vector<probe::device_facts> found;
    const auto* devices = answer->if_contains("devices");
    if (devices && devices->is_array())
      for (const auto& one : devices->as_array()) {
        const auto& facts = one.as_object();
        found.push_back({static_cast<std::uint32_t>(found.size()),
                         std::string(facts.at("name").as_string()),
                         static_cast<std::uint64_t>(number_in(facts, "memory")),
                         static_cast<std::uint64_t>(number_in(facts, "used")),
                         {}});
      }
    return found;
  }

  result<probe::computed> compute(std::uint32_t index) override {
    const auto answer = torch_->ask({"compute", index});
    if (!answer)
      return tl::make_unexpected(answer.error());
    const auto seconds = number_in(*answer, "seconds");
    if (!(seconds > 0))
      return failure(errc::invalid, "the products of matrices took no time");
    return probe::computed{
        std::chrono::duration_cast<duration>(std::chrono::duration<double>(seconds)),
        number_in(*answer, "operations") / seconds / 1e9};
  }

  result<std::uint64_t> copy_bandwidth(std::uint32_t from, std::uint32_t to) override {
    const auto answer = torch_->ask({"copy", from, to});
    if (!answer)
      return tl::make_unexpected(answer.error());
    const auto seconds = number_in(*answer, "seconds");
    return seconds > 0 ? static_cast<std::uint64_t>(number_in(*answer, "bytes") / seconds / 1e6)
                       : std::uint64_t{0};
  }

  result<std::uint32_t> channels(std::uint32_t, std::uint32_t) override {
    return failure(errc::unavailable,
                   "PyTorch does not tell the links between its devices: give --min-channels 0");
  }

  std::string collectives() override { return {}; }
  result<std::string> make_group_key() override { return no_groups(); }
  result<std::unique_ptr<probe::device_group>> join_group(const std::string&,
                                                          const probe::group_place&) override {
    return no_groups();
  }

 private:
  static tl::unexpected<error> no_groups() {
    return failure(errc::unavailable, "there are no groups of devices through PyTorch");
  }

  std::unique_ptr<torch_process> torch_;
};

} // namespace

result<std::unique_ptr<probe::device_port>> torch_devices(const std::string& how) {
  auto words = words_of(how);
  if (!words)
    return tl::make_unexpected(words.error());
  auto torch = std::make_unique<torch_process>(std::move(*words));
  if (const auto started = torch->start(); !started)
    return tl::make_unexpected(started.error());
  if (const auto ready = torch->next_answer(); !ready)
    return failure(errc::unavailable,
                   fmt::format("{} cannot look at devices by torch.{}: {}; install what is missing "
                               "there, or name another Python (--python)",
                               torch->words().python, torch->words().device, ready.error().what));
  return std::make_unique<devices_by_torch>(std::move(torch));
}

} // namespace troupe::os
