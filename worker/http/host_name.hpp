/// The name of a host in the header Leasehold-Host and in logs: 1 to 253 letters, digits, '.', '-',
/// '_' and ':'. Each name of a host in a cell is one.
#pragma once

#include <string>
#include <string_view>

namespace leasehold::http {

bool is_host_name(std::string_view text);

/// For the command line: empty for a host name, otherwise what is wrong with it.
std::string check_host_name(const std::string& text);

/// The host name of this machine, in which each other character is replaced by '-'.
std::string machine_host_name();

}  // namespace leasehold::http
