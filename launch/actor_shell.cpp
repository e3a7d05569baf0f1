#include "launch/machine.hpp"
#include "launch/program.hpp"
#include "launch/tree_text.hpp"
#include "messages/kinds.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <future>

#include <unistd.h>

using namespace troupe;
using namespace troupe::launch;

namespace {

constexpr auto program = "actor-shell";

messages::msg<messages::Hello> introduction() {
  messages::author author("actor-shell");
  return author.write<messages::Hello>({}, [](messages::Hello::Builder b) {
    b.setNode(fmt::format("shell-{}", ::getpid()));
    b.setRole(messages::Hello::Role::SHELL);
  });
}

/// Asks the master for its tree.
result<messages::msg<messages::TreeReport>> ask_tree(ports::transport& transport,
                                                     const ports::endpoint& master) {
  using answer = result<messages::msg<messages::TreeReport>>;
  auto dialled = std::make_shared<std::promise<result<ports::connection_ptr>>>();
  auto dialling = dialled->get_future();
  transport.dial(master, introduction(), [dialled](auto r) { dialled->set_value(std::move(r)); });
  auto link = dialling.get();
  if (!link)
    return tl::make_unexpected(link.error());

  auto promise = std::make_shared<std::promise<answer>>();
  auto told = std::make_shared<bool>(false); // only the transport's thread looks at it
  const auto tell = [promise, told](answer a) {
    if (!std::exchange(*told, true))
      promise->set_value(std::move(a));
  };
  auto answered = promise->get_future();
  (*link)->open(
      {[tell](const messages::any_msg& m) {
         if (m.is<messages::TreeReport>())
           tell(m.as<messages::TreeReport>());
         if (m.is<messages::Refused>())
           tell(failure(errc::refused, m.as<messages::Refused>().read()->getReason().cStr()));
       },
       [tell](const ports::link_ending& end) { tell(failure(errc::closed, end.reason)); }});
  const auto question =
      messages::build<messages::TreeRequest>({"actor-shell", {}, {}, 1, 1}, [](auto) {});
  if (auto sent = (*link)->send(question.any()); !sent)
    return tl::make_unexpected(sent.error());
  if (answered.wait_for(3 * limits::request_within) != std::future_status::ready)
    return failure(errc::unavailable,
                   fmt::format("the master at {} did not answer", ports::to_string(master)));
  return answered.get();
}

} // namespace

int main(int argc, char** argv) {
  prepare_process();
  const auto parsed = parse_shell(arguments_of(argc, argv), this_machine());
  if (const auto code = unless_parsed(program, parsed))
    return *code;
  const auto& options = std::get<shell_options>(parsed);
  os::io_thread io;
  auto transport = open_transport(io, options.common, [](const std::string&, const log::event&) {});
  if (!transport)
    return complain(program, transport.error().what, exit_failure);
  const auto tree = ask_tree(**transport, options.master);
  if (!tree)
    return complain(program, tree.error().what, exit_failure);
  std::fputs(tree_text(*tree).c_str(), stdout);
  return exit_success;
}
