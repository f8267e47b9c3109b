/// The classes of the source tree and their sizes. Reads tokens, not C++: it knows the declarations
/// that this tree uses, and reports a file whose brackets do not match.
#pragma once

#include <string>
#include <vector>

#include "tests/tidy/source_tree.hpp"

namespace leasehold::tidy {

struct ClassSize {
  std::string name;                      ///< With its named namespaces and outer classes.
  std::string path;                      ///< The file that defines the class.
  std::size_t line = 0;                  ///< From 1.
  std::size_t functions = 0;             ///< Member functions that the class declares.
  std::size_t defaulted = 0;             ///< Of these, the defaulted and deleted ones.
  std::size_t data_members = 0;          ///< Without static ones.
  std::size_t implementation_lines = 0;  ///< Definitions of its functions, in every file.
};

struct ScannedClasses {
  std::vector<ClassSize> classes;
  std::vector<std::string> unreadable;  ///< Paths of files whose brackets do not match.
};

/// Every class and struct that `sources` define outside of functions. The functions of a nested
/// class count for the nested class only.
ScannedClasses scan_classes(const Sources& sources);

}  // namespace leasehold::tidy
