#include "tests/tidy/class_scanner.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "tests/tidy/cpp_tokens.hpp"

namespace leasehold::tidy {
namespace {

using Names = std::vector<std::string>;

/// A member function that is defined outside of its class.
struct Definition {
  Names scope;      ///< The namespaces around it.
  Names qualifier;  ///< "X" and "Y" of X::Y::f.
  std::string path;
  std::size_t lines = 0;
};

/// What one file declares.
struct Declarations {
  std::vector<ClassSize> classes;
  std::vector<Definition> definitions;
  bool has_mismatch = false;  ///< Brackets do not match.
};

struct Scope {
  Names names;
  std::optional<std::size_t> owner;  ///< Index of the class; empty in a namespace.
};

bool is_name(std::string_view token) {
  return is_word_character(token.front()) && !std::isdigit(static_cast<unsigned char>(token[0]));
}

std::string join(const Names& names) {
  std::string joined;
  for (const std::string& name : names) joined += (joined.empty() ? "" : "::") + name;
  return joined;
}

/// Stands for the name of an unnamed namespace.
std::string file_scope(const std::string& path) {
  return "(" + path + ")";
}

void erase_file_scope(std::string& name, const std::string& path) {
  const std::string scope = file_scope(path) + "::";
  for (auto at = name.find(scope); at != std::string::npos; at = name.find(scope))
    name.erase(at, scope.size());
}

template <class Texts>
bool is_one_of(std::string_view token, const Texts& texts) {
  return std::ranges::find(texts, token) != texts.end();
}

constexpr std::array<std::string_view, 3> kAccess{"public", "protected", "private"};
constexpr std::array<std::string_view, 3> kClassKeys{"class", "struct", "union"};
/// Statements without a body that end with a semicolon.
constexpr std::array<std::string_view, 5> kSkipped{"using", "typedef", "static_assert", "enum",
                                                   "concept"};
/// A bracket after one of these does not start the parameters of a function.
constexpr std::array<std::string_view, 6> kTakesBracket{"alignas",  "decltype",      "explicit",
                                                        "requires", "__attribute__", "noexcept"};

/// Reads the declarations of one file.
class DeclarationReader {
 public:
  DeclarationReader(std::string path, std::vector<Token> tokens)
      : path_(std::move(path)), tokens_(std::move(tokens)) {}

  Declarations run() {
    read_scope({});
    if (at_ != tokens_.size() || depth_ != 0) found_.has_mismatch = true;
    return std::move(found_);
  }

 private:
  bool is_end() const { return at_ >= tokens_.size(); }
  std::string_view token(std::size_t ahead = 0) const {
    return at_ + ahead < tokens_.size() ? tokens_[at_ + ahead].text : std::string_view("\0", 1);
  }
  std::size_t line_before() const { return tokens_[at_ - 1].line; }

  /// Skips a (, [ or { and all up to its partner.
  void skip_group() {
    std::size_t depth = 0;
    do {
      const char c = token().front();
      if (c == '(' || c == '[' || c == '{') ++depth;
      if (c == ')' || c == ']' || c == '}') --depth;
      ++at_;
    } while (depth > 0 && !is_end());
    if (depth > 0) found_.has_mismatch = true;
  }

  /// Skips template parameters or arguments from their <.
  void skip_angles() {
    std::size_t depth = 0;
    while (!is_end()) {
      const std::string_view t = token();
      if (t == "(" || t == "[" || t == "{") {
        skip_group();
        continue;
      }
      if (t == "<") ++depth;
      ++at_;
      if (t == ">" && --depth == 0) return;
    }
  }

  void skip_template() {
    ++at_;
    skip_angles();
  }

  void skip_statement() {
    while (!is_end() && token() != ";") skip_one();
    ++at_;
  }

  void skip_one() {
    if (token() == "(" || token() == "[" || token() == "{")
      skip_group();
    else
      ++at_;
  }

  /// Reads up to the } of the scope, or to the end of the file.
  void read_scope(const Scope& scope) {
    while (!is_end()) {
      if (token() == "}") {
        if (depth_ > 0)
          --depth_;
        else
          found_.has_mismatch = true;
        ++at_;
        return;
      }
      if (token() == ";")
        ++at_;
      else if (token() == "namespace")
        read_namespace(scope);
      else if (token() == "extern" && token(2) == "{")
        enter(scope, at_ + 3);
      else if (token() == "template" && token(1) == "<")
        skip_template();
      else if (is_one_of(token(), kAccess))
        at_ += 2;
      else if (is_one_of(token(), kSkipped))
        skip_statement();
      else
        read_declaration(scope);
    }
  }

  void enter(const Scope& scope, std::size_t first) {
    at_ = first;
    ++depth_;
    read_scope(scope);
  }

  void read_namespace(Scope scope) {
    std::size_t end = at_ + 1;
    for (; end < tokens_.size() && tokens_[end].text != "{"; ++end) {
      if (tokens_[end].text == ";" || tokens_[end].text == "=") return skip_statement();
      if (is_name(tokens_[end].text)) scope.names.emplace_back(tokens_[end].text);
    }
    if (end == at_ + 1) scope.names.push_back(file_scope(path_));
    enter(scope, end + 1);
  }

  /// Reads a function, a class, or the declaration of one or more variables.
  void read_declaration(const Scope& scope) {
    const std::size_t first = at_;
    std::size_t variables = 1;
    bool is_member = scope.owner.has_value();
    while (!is_end()) {
      const std::string_view t = token();
      if (t == "static" || t == "friend") is_member = false;
      if (is_one_of(t, kClassKeys) && read_class(scope)) return;
      if (t == "operator") return read_operator(scope, first);
      if (t == "(" && token(1) != "*") return read_function(scope, first, at_ - 1);
      if (t == "}") return;
      if (t == ";") break;
      if (t == ",") ++variables;
      if (t == "=") {
        variables += skip_initialiser();
      } else if (t == "<") {
        skip_angles();
      } else if (is_one_of(t, kTakesBracket) && token(1) == "(") {
        ++at_;
        skip_group();
      } else if (t == "(") {  // a pointer to a function: (*name)(parameters)
        skip_group();
        if (token() == "(") skip_group();
      } else {
        skip_one();
      }
    }
    ++at_;
    if (is_member) found_.classes[*scope.owner].data_members += variables;
  }

  /// Skips to the semicolon of a declaration, and returns the number of further variables in it.
  std::size_t skip_initialiser() {
    std::size_t further = 0;
    while (!is_end() && token() != ";") {
      if (token() == "," && is_name(token(1)) && (token(2) == "=" || token(2) == ";")) ++further;
      skip_one();
    }
    return further;
  }

  /// Reads `class Name`, with a body or as a forward declaration. Returns false where the key only
  /// begins the type of a variable or of a result.
  bool read_class(const Scope& scope) {
    const std::size_t key = at_++;
    std::string name;
    while (!is_end() && (token() == "[" || token() == "alignas")) {
      at_ += token() == "alignas";
      skip_group();
    }
    while (is_name(token()) && token() != "final") {
      name += token();
      ++at_;
      if (token() == "<") {
        const std::size_t open = at_;
        skip_angles();
        for (std::size_t i = open; i < at_; ++i) name += tokens_[i].text;
      }
      if (token() != "::") break;
      name += token();
      ++at_;
    }
    if (token() == ";") return true;
    at_ += token() == "final";
    if (token() != "{" && token() != ":") {
      at_ = key;
      return false;
    }
    while (!is_end() && token() != "{") {  // the base classes
      if (token() == "<")
        skip_angles();
      else
        ++at_;
    }
    Scope inside = scope;
    inside.names.push_back(name.empty() ? "(unnamed)" : name);
    inside.owner = found_.classes.size();
    found_.classes.push_back(
        {.name = join(inside.names), .path = path_, .line = tokens_[key].line});
    enter(inside, at_ + 1);
    if (token() != ";" && scope.owner) ++found_.classes[*scope.owner].data_members;
    skip_statement();
    return true;
  }

  void read_operator(const Scope& scope, std::size_t first) {
    const std::size_t name = at_;
    at_ += token(1) == "(" ? 3 : 1;
    while (!is_end() && token() != "(") ++at_;
    read_function(scope, first, name);
  }

  /// Reads a function from its parameters on. `first`: the first token of the declaration; `name`:
  /// the token of the function's name.
  void read_function(const Scope& scope, std::size_t first, std::size_t name) {
    skip_group();
    bool has_initialisers = false;  // of a constructor
    bool is_defaulted = false;
    bool has_body = false;
    while (!is_end() && token() != ";" && !has_body) {
      const std::string_view before = tokens_[at_ - 1].text;
      if (token() == "}") return;  // a macro that takes no semicolon
      if (token() == "{")
        has_body = !has_initialisers || !(is_name(before) || before == ">");
      else if (token() == ":")
        has_initialisers = true;
      else if (token() == "=")
        is_defaulted = token(1) != "0";
      if (token() == "<")
        skip_angles();
      else
        skip_one();
    }
    if (!has_body) ++at_;
    const std::size_t lines = has_body ? line_before() - tokens_[first].line + 1 : 0;
    if (scope.owner) {
      if (tokens_[first].text == "friend") return;
      ClassSize& owner = found_.classes[*scope.owner];
      ++owner.functions;
      owner.defaulted += is_defaulted;
      owner.implementation_lines += lines;
    } else if (Names qualifier = qualifier_of(first, name); has_body && !qualifier.empty()) {
      found_.definitions.push_back({scope.names, std::move(qualifier), path_, lines});
    }
  }

  /// "X" and "Y" before the name of X<T>::Y::f.
  Names qualifier_of(std::size_t first, std::size_t name) const {
    Names qualifier;
    if (name > first && tokens_[name - 1].text == "~") --name;
    while (name >= first + 2 && tokens_[name - 1].text == "::") {
      name -= 2;
      if (tokens_[name].text == ">") name = before_angles(first, name);
      qualifier.insert(qualifier.begin(), std::string(tokens_[name].text));
    }
    return qualifier;
  }

  /// The token before the < that the > at `close` ends.
  std::size_t before_angles(std::size_t first, std::size_t close) const {
    std::size_t depth = 0;
    for (std::size_t i = close; i > first; --i) {
      if (tokens_[i].text == ">") ++depth;
      if (tokens_[i].text == "<" && --depth == 0) return i - 1;
    }
    return first;
  }

  std::string path_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;  ///< Of the scopes around `at_`.
  Declarations found_;
};

/// Finds the class of a definition as C++ does: from the innermost namespace outwards.
class ClassIndex {
 public:
  explicit ClassIndex(std::vector<ClassSize>& classes) {
    for (ClassSize& found : classes) by_name_.emplace(found.name, &found);
  }

  ClassSize* find(const Definition& definition) const {
    Names scope = definition.scope;
    while (true) {
      for (const bool is_unnamed : {false, true}) {
        Names name = scope;
        if (is_unnamed) name.push_back(file_scope(definition.path));
        name.insert(name.end(), definition.qualifier.begin(), definition.qualifier.end());
        if (const auto found = by_name_.find(join(name)); found != by_name_.end())
          return found->second;
      }
      if (scope.empty()) return nullptr;
      scope.pop_back();
    }
  }

 private:
  std::map<std::string, ClassSize*> by_name_;
};

}  // namespace

ScannedClasses scan_classes(const Sources& sources) {
  ScannedClasses scanned;
  std::vector<Definition> definitions;
  for (const SourceFile& file : sources) {
    std::string text;
    for (const std::string& line : file.lines) text += line + '\n';
    Declarations found = DeclarationReader(file.path, tokens_of(text)).run();
    if (found.has_mismatch) scanned.unreadable.push_back(file.path);
    std::ranges::move(found.classes, std::back_inserter(scanned.classes));
    std::ranges::move(found.definitions, std::back_inserter(definitions));
  }
  const ClassIndex index(scanned.classes);
  for (const Definition& definition : definitions) {
    if (ClassSize* owner = index.find(definition)) owner->implementation_lines += definition.lines;
  }
  for (ClassSize& found : scanned.classes) erase_file_scope(found.name, found.path);
  return scanned;
}

}  // namespace leasehold::tidy
