// SPDX-License-Identifier: Apache-2.0
// Flags: the command line of our programs: "--name value" or "--name=value", each with a help line;
// for a few also "-n value".
//
//   Flags flags("flamefleet-store", "Keeps profiles and answers queries about them.");
//   flags.Text("listen", "ADDRESS", "where to listen", &options.listen);
//   FF_RETURN_IF_ERROR(flags.Parse(argc - 1, argv + 1));
//   if (flags.help_wanted()) ...print flags.Help()
//
// A value that is not given keeps what the variable held before: its default, shown in the help. A
// flag with an environment variable takes its value from there when the command line has none.
//
// Thread: main only. Errors: kInvalidArgument; the message names the flag and says what is allowed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"

namespace flamefleet {

class Flags {
 public:
  Flags(std::string usage, std::string summary);

  // `environment`: name of the variable read when the flag is absent; empty: none. An empty
  // variable counts as absent.
  void Text(const std::string& name, const std::string& placeholder, const std::string& help,
            std::string* value, const std::string& environment = "");
  // May be given several times.
  void TextList(const std::string& name, const std::string& placeholder, const std::string& help,
                std::vector<std::string>* values);
  // Whole number within [min, max].
  void Number(const std::string& name, const std::string& placeholder, const std::string& help,
              int64_t min, int64_t max, int64_t* value, const std::string& environment = "");
  // As ParseDuration: "20s", "1h30m".
  void Duration(const std::string& name, const std::string& help, std::chrono::nanoseconds* value,
                const std::string& environment = "");
  // "--name" alone is true; "--name=false" as well.
  void Switch(const std::string& name, const std::string& help, bool* value);

  // "-f" for the flag of this name, which was added before.
  void Short(char letter, const std::string& name);
  // What is neither flag nor value goes to `values`; without this it is an error.
  void Arguments(std::vector<std::string>* values) { arguments_ = values; }

  // Reads the arguments after the program's (and subcommand's) name. --help ends it at once.
  Status Parse(int count, const char* const* arguments);

  bool help_wanted() const { return help_wanted_; }
  std::string Help() const;

 private:
  struct Flag {
    std::string name;
    char letter = 0;          // 0: none
    std::string placeholder;  // empty: a switch, needs no value
    std::string help;
    std::string default_text;
    std::string environment;
    std::function<Status(const std::string&)> set;
    bool given = false;
  };

  void Add(Flag flag);
  Flag* Find(const std::string& name);
  Flag* FindArgument(const std::string& argument);
  static Status Set(Flag& flag, const std::string& source, const std::string& text);

  const std::string usage_;
  const std::string summary_;
  std::vector<Flag> flags_;
  std::vector<std::string>* arguments_ = nullptr;
  bool help_wanted_ = false;
};

}  // namespace flamefleet
