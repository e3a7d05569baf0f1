#pragma once

#include "launch/options/options.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

/// The command lines of our programs, read as torchrun reads its own (Python's argparse): options
/// with dashes or underscores, `--name value` and `--name=value`, `-r3` and `-mr3`, defaults from
/// PET_<NAME>, the last of several values wins, the first word that is no option ends them. No
/// library for C++ reads abbreviations, values and the end of the options as argparse does, so this
/// is our own.
namespace troupe::launch {

/// Takes a value's text; answers what it should have been, or nothing if that is what it was.
using taker = std::function<std::optional<std::string>(const std::string&)>;

taker into(std::string& target);
taker into(std::optional<std::string>& target);
/// Python's int(); a number too large for 64 bits becomes the largest.
taker into(std::int64_t& target);
taker into(std::optional<std::int64_t>& target);
/// Python's float().
taker into(double& target);
/// For a flag, which is taken as "1".
taker into(bool& target);

/// Whose an option is, and so which program acts on it. The table of configuration.md has a column
/// of these, and `job_words_of` (launch/options/job_words.hpp) goes by them.
enum class scope : std::uint8_t {
  process, ///< the program that is told: its log, its proof of itself, its documents
  worker,  ///< given to the training processes of this node
  node,    ///< this node's part in the job
  job,     ///< the job's: any node may say it, and its master acts on it wherever that runs
  both,    ///< the job's, and each node acts on it too: all nodes are to be told the same
  master,  ///< the program that runs the master: it reaches that machine or its account
};
/// "worker's" for people; empty: of the program itself.
std::string in_words(scope s);

struct option {
  scope whose;
  /// "-m", "--module": short first, then long with dashes. The same with underscores is understood.
  std::vector<std::string> names;
  /// What stands for the value in the help text; empty: a flag.
  std::string value;
  std::string about;
  taker take;
  std::vector<std::string> choices;
  /// Without choices: what is often given, for a shell to complete.
  std::vector<std::string> usual;
  /// Asked for text instead of a run: gives it, and nothing behind is looked at.
  std::function<std::string(const std::string&)> answer;
  /// Not empty: known and refused when used, with this reason.
  std::string missing;
  /// Whether PET_<NAME> is its default.
  bool preset = true;
  /// Whether a unique beginning of the name is enough.
  bool abbreviable = true;
  /// Of an option that may have several values as words of their own: whether this word is a
  /// further one. They are joined by blanks.
  std::function<bool(const std::string&)> goes_on;

  /// The values that a shell completes.
  const std::vector<std::string>& completed() const;
};

/// `o`, with one of these values only.
option among(std::vector<std::string> choices, option o);
/// `o`, with any value, of which these are often given.
option often(std::vector<std::string> usual, option o);
/// `o`, with further values in the words that follow, as long as they are like that.
option several(std::function<bool(const std::string&)> goes_on, option o);
/// `o`, never from the environment.
option typed_only(option o);
/// `o`, known but refused when used: its feature is not there.
option without(std::string what_is_missing, option o);
/// `o`, whose name must be written out: beside torchrun's options, so that ours never make an
/// abbreviation ambiguous that torchrun takes.
option in_full(option o);

struct option_group {
  std::string title;
  std::vector<option> options;
};
option_group in_full(option_group group);

/// A word that stands for another program where the first word that is no option is expected.
struct verb {
  std::string name;
  std::string about;
};

class argument_grammar {
 public:
  /// `usage`: what follows the program's name.
  argument_grammar(std::string program, std::string usage, std::string about);

  void add(option_group group);
  /// For people and shells to know of: the program looks for it before the words are parsed.
  void add_verb(verb v) { verbs_.push_back(std::move(v)); }

  struct example {
    std::string what, line; ///< of the shell
  };
  /// For help and manual.
  void show(std::vector<example> examples) { examples_ = std::move(examples); }
  /// The names of the options that most users need: `help` has these only. None: all of them.
  void most_used(std::set<std::string> names) { most_used_ = std::move(names); }

  /// An option that was given, by a word or a variable; the last value of several.
  struct given {
    std::string value; ///< of a flag: "1"
    scope whose;
    bool flag;
  };
  struct positional {
    /// From the first word that is no option on.
    std::vector<std::string> rest;
    /// By long name.
    std::map<std::string, given> said;
    /// By its name, the variable that an option's value is from.
    std::map<std::string, std::string> variables;
  };
  /// As above, in a line about an option that was found wrong later: where the user has given it.
  static refusal by_its_source(refusal about, const std::map<std::string, std::string>& variables);
  std::variant<positional, just_print, refusal>
  parse(const std::vector<std::string>& arguments,
        const std::map<std::string, std::string>& environment) const;

  /// Of the option with that long name; nothing: there is none.
  std::optional<scope> scope_of(const std::string& name) const;

  /// Filled to lines that are shorter than so many columns.
  std::string help(std::size_t columns) const;
  std::string help_all(std::size_t columns) const;
  /// All options as a page for man (groff), or as Markdown.
  std::string manual(const std::string& format) const;
  /// A script for bash, zsh, fish or tcsh.
  std::string completion(const std::string& shell) const;

 private:
  struct spoken;
  struct sentence;
  struct meaning;

  meaning recognize(const std::string& word) const;
  sentence read(const std::vector<std::string>& arguments) const;
  /// Reads the option at `at` with its value; answers where the next word is.
  std::size_t read_option(const std::vector<std::string>& arguments, std::size_t at, meaning f,
                          sentence& out) const;
  std::optional<refusal> preset(const std::map<std::string, std::string>& environment,
                                const std::vector<const option*>& already, bool flags,
                                positional& out) const;
  std::string unknown_option(const std::string& word) const;
  const option* named(const std::string& spelling) const;

  std::string help(std::size_t columns, const std::set<std::string>& named) const;

  std::string program_, usage_, about_;
  std::vector<example> examples_;
  std::set<std::string> most_used_;
  std::vector<option_group> groups_;
  std::vector<verb> verbs_;
  std::map<std::string, std::pair<std::size_t, std::size_t>> spellings_;
};

} // namespace troupe::launch
