/// The command of brokerctl for words that people know from kubectl, systemctl, docker and shells.
/// Pure.
#pragma once

#include <span>
#include <string>

namespace leasehold::brokerctl {

/// `words` begin with a command, or a noun and a verb, that brokerctl does not have. Returns the
/// command line to use, with the given name in its place: "brokerctl tenants admit bob" for
/// `create tenant bob` and `tenants add bob`. Empty for an unknown word.
std::string command_for(std::span<const std::string> words);

/// Returns "brokerctl get tenant bob" for `tenants bob`; empty for words that are not a noun and a
/// possible name.
std::string list_command_for(std::span<const std::string> words);

}  // namespace leasehold::brokerctl
