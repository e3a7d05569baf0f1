#pragma once

#include "actors/limits.hpp"
#include "ckpt/limits.hpp"
#include "launch/options/accelerator.hpp"
#include "launch/options/box_pairs.hpp"
#include "launch/options/cluster.hpp"
#include "launch/options/hangs.hpp"
#include "launch/options/interpreter.hpp"
#include "launch/options/metrics.hpp"
#include "launch/options/node_check.hpp"
#include "launch/options/policy.hpp"
#include "launch/options/rendezvous.hpp"
#include "launch/options/signals.hpp"
#include "launch/options/streams.hpp"
#include "messages/job_words.hpp"
#include "runtime/base/result.hpp"
#include "runtime/base/time.hpp"
#include "runtime/os/log/logs.hpp"
#include "runtime/ports/transport.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

/// The command lines of the programs. Names and meanings are torchrun's where it has them; where we
/// differ, docs/deviations.md says so.
namespace troupe::launch {

/// Where a job's token may come from beside --token-file. Workers do not see them.
constexpr auto token_variable = "TROUPE_TOKEN";
constexpr auto token_file_variable = "TROUPE_TOKEN_FILE";
/// Where DLRover's data loader looks for settings that may change while it runs.
constexpr auto tuning_file_variable = "DLROVER_PARAL_CONFIG_PATH";

/// Options every program has.
struct common_options {
  os::verbosity talk = os::verbosity::normal;
  std::string json_log;
  /// Certificate files; all three or none.
  std::string certificate;
  std::string key;
  std::string authority;
  /// The authority's certificate revocation list; empty: none.
  std::string revoked;
  /// The file with the job's token, or, from a variable only, the token itself; none of them: one
  /// for this machine.
  std::string token_file;
  std::string token;
  /// The file that `token` was read from, for people.
  std::string token_from;
  /// Else this end talks to processes of its own user on this machine only.
  bool reaches_other_machines() const {
    return !certificate.empty() || !token_file.empty() || !token.empty();
  }
};

/// `--numa-binding`: the CPUs a worker may use, by the GPU with its local rank.
enum class numa_binding {
  none,
  node,         ///< all of the NUMA node the GPU is at
  socket,       ///< all of that node's socket
  exclusive,    ///< a share of the node's cores that no other GPU's worker has
  core_complex, ///< cores of the node that share a cache
};

/// `--membind-policy`: the memory of a worker that is bound to a NUMA node.
enum class memory_binding {
  none,
  preferred, ///< that node's, as long as there is some
  only,      ///< that node's alone
};

/// `--start-method`: how a Python that starts workers for `--run-path` would make them. It has no
/// effect: the launcher starts every worker itself.
enum class start_method { spawn, fork, forkserver };

struct launcher_options {
  common_options common;

  std::uint32_t nodes_min = 1;
  std::uint32_t nodes_max = 1;
  /// --nnodes was given: what the master was told must be the same.
  bool nodes_said = false;
  std::uint32_t processes_per_node = 1;
  job_policy policy;
  hang_options hangs;
  node_check_options check;
  cluster_options cluster;
  metrics_options metrics;

  rendezvous_options rendezvous;
  /// Whether other nodes may take part, now or later.
  bool may_have_others() const { return nodes_max > 1 || rendezvous.master_is_named; }
  /// The job's id; a fresh one for a job that is alone on its node, as torchrun has it.
  std::string rdzv_id = "none";
  /// The address other nodes reach this one at, and from which it dials; empty: found out.
  std::string local_addr;
  std::string node_name;
  std::string journal;
  /// The tracing library is put before CUDA and NCCL in the workers.
  bool trace = false;
  /// How the job ended is written here, as JSON, instead of printing the summary.
  std::string outcome_file;

  std::uint32_t max_restarts = 0;
  duration shutdown_timeout = limits::stop_workers_within;
  signal_options signals;
  /// Exit with the code of the root cause instead of 1.
  bool propagate_exit_code = false;

  std::string role = "default";
  stream_options streams;
  bool virtual_local_rank = false;
  /// Workers get --local-rank=N as their first argument, as torch.distributed.launch does it.
  bool local_rank_argument = false;
  numa_binding numa = numa_binding::none;
  memory_binding memory = memory_binding::none;
  accelerator devices = accelerator::nvidia;
  /// By --accelerator; else found out.
  bool devices_said = false;
  /// The first port that HCCL is to use; nothing: it picks them.
  std::optional<std::uint16_t> hccl_port;
  /// Workers are told of a file with settings that a person may change while they run.
  bool auto_tuning = false;
  /// Bytes in a second that this node gives to others as copies of its snapshots, at most; 0: no
  /// bound.
  std::uint64_t copy_rate = limits::copy_rate;
  std::optional<std::int64_t> copy_rate_said; ///< MiB

  /// How long this node trains on without a link to its master.
  duration master_away_timeout = limits::train_on_within;
  std::optional<std::int64_t> master_away_said; ///< seconds

  /// The script is a module's name.
  bool module = false;
  /// The script is a program of its own.
  bool no_python = false;
  /// What runs the script, unless it is a program of its own.
  interpreter python;
  /// The script is run by runpy.run_path; `no_python` and `module` say nothing then.
  bool run_path = false;
  start_method start = start_method::spawn;
  std::vector<std::string> command; ///< script (or module, or program) and its arguments
  /// All words, as they were typed.
  std::vector<std::string> arguments;
  /// No run: a token file is made.
  bool new_token = false;
  /// No run: ranks are printed.
  bool print_ranks = false;
  std::optional<ranks_request> ranks_wanted;

  /// The switches above this node, the top of the network first.
  std::vector<std::string> switches;
  /// Other names of the machine below this node, as its pod was told them.
  std::vector<std::string> machine;
  /// The directory of RANK_AFTER_ACC and MASTER_INDEX; empty: none.
  std::string rank_files;

  /// OMP_NUM_THREADS for the workers, unless the user has set it.
  std::optional<unsigned> omp_threads;
  /// What these options say of the job; files are read later.
  messages::job_words of_job;
  /// The names of those that only the program acts on that runs the master.
  std::vector<std::string> of_master;
  /// What the user should know about these options, and --quiet leaves out: one line each.
  std::vector<std::string> remarks;
};

/// `actor-launcher doctor`: what would be missing on this machine for the job of these options.
struct doctor_options {
  launcher_options job; ///< the command may be empty
  /// One JSON object a line instead of a table.
  bool json = false;
  /// Where the job's script saves checkpoints; empty: it is not looked at.
  std::string checkpoints;
};

struct master_program_options {
  common_options common;
  ports::endpoint listen{"127.0.0.1", 29400};
  std::uint32_t nodes_min = 1;
  std::uint32_t nodes_max = 1;
  /// --nnodes was given, to this program or by a node.
  bool nodes_said = false;
  job_policy policy;
  hang_options hangs;
  node_check_options check;
  cluster_options cluster;
  metrics_options metrics;
  std::string rdzv_id = "none";
  rendezvous_settings rendezvous;
  /// Nothing: what the nodes say.
  std::optional<std::uint32_t> max_restarts;
  std::string journal;
  /// What this program was told of the job itself.
  messages::job_words of_job;
};

/// actor-operator.
struct operator_program_options {
  enum class gang { none, volcano, scheduler_plugins };

  common_options common;
  std::string name_space; ///< whose jobs; empty: of all namespaces
  std::string master_image, master_image_pull_policy;
  std::string lease = "troupe-operator";
  gang scheduling = gang::none;
  std::uint32_t group_size = 0;
  std::string group_label;
  std::string topology_config = "node-topology-config";
  std::string mark_faulty; ///< how masters mark machines: "taint", "cordon"; empty: not at all
  std::optional<ports::endpoint> metrics_listen; ///< nothing: no port is opened
  std::uint16_t master_metrics_port = 0;         ///< 0: masters serve no metrics
  /// The job whose end is waited for, and for how long; nothing: it is an operator.
  std::optional<std::string> awaited_job;
  std::chrono::seconds wait_limit{300};
  kubernetes_account account;
};

struct shell_options {
  common_options common;
  /// The jobs on this machine, instead of the tree of one.
  bool lists_jobs = false;
  /// The stacks of all ranks of one; and whether those of Python are shown as lines as well.
  bool stacks = false;
  bool text = false;
  /// How many nodes its worlds may have from now on; nothing: it is only looked at.
  struct sizes {
    std::uint32_t nodes_min = 1, nodes_max = 1;
  };
  std::optional<sizes> scale;
  /// The batch size that data loaders take from now on, and the file that tells them; empty: that
  /// of the only job of this user with workers on this machine.
  std::optional<std::uint32_t> batch_size;
  std::string settings_file;
  /// Nothing: the one that this user has on this machine.
  std::optional<ports::endpoint> master;
  /// One document in JSON instead of lines.
  bool json = false;
  /// Ask again, so often.
  std::optional<duration> watch;
  /// Which rows: of one node (empty: all), so many levels below the master, in trouble.
  std::string node;
  std::optional<unsigned> depth;
  bool troubled = false;
};

struct stacks_options {
  std::string path = "."; ///< where the dumps are
  std::string output;     ///< where to write; never empty once it is parsed
};

struct dump_program_options {
  struct process {
    std::int32_t pid = 0;
    std::uint32_t rank = 0;
  };
  std::vector<process> processes;
  bool python = true;
  bool native = true;
  bool with_children = false;
  /// Looks that tell whether a process moves; 0: none.
  int samples = 0;
  std::chrono::milliseconds apart{};
  std::chrono::milliseconds within{};
  /// Messages instead of text for people.
  bool as_messages = false;
  std::uint32_t world_size = 0; ///< 0: not said
};

/// How is this node by itself?
struct probe_program_options {
  struct box_check {
    std::vector<box_pair> pairs;
    std::uint64_t min_bandwidth = 0;
    std::uint32_t min_channels = 0;
  };
  /// Nothing: switches between devices are not looked at.
  std::optional<box_check> box;
  std::chrono::milliseconds within{};
  /// One JSON object instead of a table.
  bool json = false;
  /// What is wanted is a message on the standard input, and so is the answer.
  bool as_messages = false;
};

/// The user asked for text (--help, --version) instead of a run.
struct just_print {
  std::string text;
};

/// The command line cannot be taken: one line for the user, and torchrun's exit code for this kind.
struct refusal {
  std::string what;
};

template<class Options>
using parsed = std::variant<Options, just_print, refusal>;

/// What the options' meaning depends on beside themselves. `environment` gives defaults: PET_NNODES
/// for --nnodes and so on.
struct machine_facts {
  std::map<std::string, std::string> environment;
  /// That this process may use.
  unsigned cpus = 1;
  /// NVIDIA's, before CUDA_VISIBLE_DEVICES.
  unsigned gpus = 0;
  /// The same of other vendors.
  devices_seen other_devices;
  devices_seen all_devices() const {
    auto all = other_devices;
    all[accelerator::nvidia] = gpus;
    return all;
  }
  /// What it calls itself.
  std::string host;
  /// An id no other job has, for the jobs that get one.
  std::string fresh_id = "none";
  /// Of the terminal that stdout is.
  std::size_t columns = 80;
  pythons_found pythons;
};

parsed<launcher_options> parse_launcher(const std::vector<std::string>& arguments,
                                        const machine_facts& machine);
/// The same options, and some of the doctor's own. No script has to be given.
parsed<doctor_options> parse_doctor(const std::vector<std::string>& arguments,
                                    const machine_facts& machine);
parsed<master_program_options> parse_master(const std::vector<std::string>& arguments,
                                            const machine_facts& machine);
/// With what a node of the job says of it, where the program was not told the same itself.
parsed<master_program_options> parse_master(const std::vector<std::string>& arguments,
                                            const machine_facts& machine,
                                            const messages::job_words& from_node);
parsed<operator_program_options> parse_operator(const std::vector<std::string>& arguments,
                                                const machine_facts& machine);

parsed<shell_options> parse_shell(const std::vector<std::string>& arguments,
                                  const machine_facts& machine);
parsed<stacks_options> parse_stacks(const std::vector<std::string>& arguments,
                                    const machine_facts& machine);
/// Of the machine only its columns count.
parsed<dump_program_options> parse_dump(const std::vector<std::string>& arguments,
                                        const machine_facts& machine);
/// The same.
parsed<probe_program_options> parse_probe(const std::vector<std::string>& arguments,
                                          const machine_facts& machine);

/// A number, "cpu", "gpu", "npu" or "auto"; devices are those of `kind`.
result<std::uint32_t> parse_processes(const std::string& text, const machine_facts& machine,
                                      accelerator kind = accelerator::nvidia);

} // namespace troupe::launch
