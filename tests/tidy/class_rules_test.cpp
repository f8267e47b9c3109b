// The rule about the size of classes must find planted violations, and count as a reader does.
#include <array>
#include <catch2/catch.hpp>
#include <string>

#include "tests/tidy/class_rules.hpp"
#include "tests/tidy/class_scanner.hpp"

using namespace leasehold::tidy;

namespace {

std::string repeated(int count, const std::string& text) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

/// A class X with one function, and what `members` adds.
std::string class_with(const std::string& members) {
  return "namespace n {\nclass X {\n public:\n  void f();\n" + members + "};\n}\n";
}

/// A function of X with `lines` lines.
std::string function_of(int lines) {
  return "namespace n {\nvoid X::f() {\n" + repeated(lines - 2, "  g();\n") + "}\n}\n";
}

Findings large(const Sources& sources) {
  return classes_over_limits(sources, {});
}

bool is_large(const std::string& text) {
  return !large({make_source("worker/a.hpp", text)}).empty();
}

/// The only class of `text`.
ClassSize size_of(const std::string& text) {
  const ScannedClasses scanned = scan_classes({make_source("worker/a.hpp", text)});
  CHECK(scanned.unreadable.empty());
  REQUIRE(scanned.classes.size() == 1);
  return scanned.classes.front();
}

}  // namespace

TEST_CASE("planted: a class of 401 lines in two files, and one of 400") {
  const auto in_files = [](int first, int second) {
    return large({make_source("worker/a.hpp", class_with("")),
                  make_source("worker/a.cpp", function_of(first)),
                  make_source("worker/other/b.cpp", function_of(second))});
  };
  CHECK(in_files(200, 200).empty());
  const Findings findings = in_files(200, 201);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].path == "worker/a.hpp");
  CHECK(findings[0].line == 2);
  CHECK(findings[0].what == "n::X: 401 lines of implementation, 1 functions, 0 data members");
}

TEST_CASE("planted: a class of 401 lines inside its own definition") {
  CHECK(is_large(class_with("int h() {\n" + repeated(399, "  g();\n") + "}\n")));
  CHECK_FALSE(is_large(class_with("int h() {\n" + repeated(398, "  g();\n") + "}\n")));
}

TEST_CASE("planted: a class of 41 functions, and one of 40") {
  CHECK(is_large(class_with(repeated(40, "  int h(int) const;\n"))));
  CHECK_FALSE(is_large(class_with(repeated(39, "  int h(int) const;\n"))));
}

TEST_CASE("planted: a class of 16 data members, and one of 15") {
  CHECK(is_large(class_with(repeated(16, "  int x_ = 0;\n"))));
  CHECK_FALSE(is_large(class_with(repeated(15, "  int x_ = 0;\n"))));
  CHECK_FALSE(is_large("struct Record {\n" + repeated(16, "  int x = 0;\n") +
                       "  bool operator==(const Record&) const = default;\n};\n"));
}

TEST_CASE("planted: only the product is limited") {
  const std::string text = class_with(repeated(16, "  int x_;\n"));
  CHECK(large({make_source("tests/support/a.hpp", text)}).empty());
  CHECK(large({make_source("tools/tenant/a.cu", text)}).size() == 1);
}

TEST_CASE("planted: an exception has limits of its own, and is needed") {
  const std::array exceptions{
      ClassException{.name = "n::X", .limits = {.data_members = 17}, .reason = "A record."}};
  const auto found = [&](int members) {
    return classes_over_limits(
        {make_source("worker/a.hpp", class_with(repeated(members, "  int x_;\n")))}, exceptions);
  };
  CHECK(found(17).empty());
  CHECK(found(18).size() == 1);
  const Findings unused = found(15);
  REQUIRE(unused.size() == 1);
  CHECK(unused[0].what == "no class needs the exception n::X");
}

TEST_CASE("planted: a file that cannot be read") {
  CHECK(is_large("namespace n {\nvoid f() {\n}\n"));
  CHECK(is_large("}\n"));
  CHECK_FALSE(is_large("const char* kText = R\"(namespace { \")\"; // {\n/* { */ char c = '{';\n"));
}

TEST_CASE("classes: functions are counted, however they are written") {
  const ClassSize size = size_of(R"(
    template <class T>
    class [[nodiscard]] X final : public Base<T, int> {
     public:
      explicit X(int a) : a_{a}, b_(a) {}
      X(X&&) = default;
      ~X() override;
      template <class U> requires (sizeof(U) > 4) auto g(U u) -> std::vector<U> { return {u}; }
      bool operator()(int) const noexcept(true);
      operator bool() const { return true; }
      friend bool operator==(const X& a, const X& b) { return a.a_ == b.a_; }
      static int h(std::function<void(int)> f = [](int) { return; });
      virtual void pure() = 0;
      struct Inner;
     private:
      int a_, b_;
    };)");
  CHECK(size.functions == 8);
  CHECK(size.defaulted == 1);
  CHECK(size.implementation_lines == 3);
  CHECK(size.data_members == 2);
}

TEST_CASE("classes: data members are counted, however they are written") {
  const ClassSize size = size_of(R"(
    struct X {
      using Handler = std::function<void(int)>;
      enum class State : std::uint8_t { Open, Closed };
      static constexpr std::size_t kSize = 3;
      static_assert(kSize > 2);
      std::map<std::string, std::function<void(int, int)>> handlers = {{"a", {}}, {"b", {}}};
      alignas(64) std::atomic<int> counter{0};
      [[maybe_unused]] int bits : 3;
      struct stat info {};
      std::array<int, kSize> numbers[2];
      int (*call)(int, int) = nullptr;
      State state = State::Open;
    };)");
  CHECK(size.data_members == 7);
  CHECK(size.functions == 0);
}

TEST_CASE("classes: a definition counts for the class that its scope names") {
  const ScannedClasses scanned = scan_classes({make_source("worker/a.cpp", R"(
    namespace a {
    class X { class Pass; void f(); };
    namespace { class X { void f(); }; }
    class X::Pass { Pass(); template <class T> T g(); };
    namespace b {
    X::Pass::Pass() {
    }
    template <class T>
    T X::Pass::g() {

    }
    void ns::free() {}
    }
    }
    void a::X::f() {}
    )")});
  REQUIRE(scanned.classes.size() == 3);
  CHECK(scanned.classes[0].name == "a::X");
  CHECK(scanned.classes[0].implementation_lines == 1);
  CHECK(scanned.classes[1].name == "a::X");
  CHECK(scanned.classes[1].implementation_lines == 0);
  CHECK(scanned.classes[2].name == "a::X::Pass");
  CHECK(scanned.classes[2].implementation_lines == 5);
}
