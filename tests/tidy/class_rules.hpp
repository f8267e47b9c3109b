/// Limits of a class, counted over all of its files. A limit for files alone would be kept by a
/// class that is spread over many of them.
#pragma once

#include <span>
#include <string_view>

#include "tests/tidy/rules.hpp"

namespace leasehold::tidy {

struct ClassLimits {
  std::size_t implementation_lines = 400;  ///< Definitions of member functions.
  std::size_t functions = 40;              ///< Declared member functions.
  /// Not limited in a plain record, which has no functions except defaulted ones.
  std::size_t data_members = 15;
};

/// A class with limits of its own.
struct ClassException {
  std::string_view name;  ///< With its namespaces.
  ClassLimits limits;
  std::string_view reason;
};

/// Every class of the product keeps the limits, or those of its exception. An exception is
/// reported if no class needs it, and a file if it cannot be read.
Findings classes_over_limits(const Sources& sources, std::span<const ClassException> exceptions);

/// The same with the exceptions of this tree.
Findings classes_too_large(const Sources& sources);

}  // namespace leasehold::tidy
