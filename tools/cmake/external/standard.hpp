/// Precompiled for rooms that use neither Asio nor JSON (LeaseholdExternal.cmake). Sources include what
/// they use: presets for several compilers and clang-tidy compile without this header.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <expected>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <ranges>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

// fmt.cpp instantiates this function once.
extern template void fmt::detail::vformat_to<char>(buffer<char>&, string_view,
                                                   basic_format_args<buffer_context<char>>,
                                                   locale_ref);
