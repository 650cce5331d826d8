#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace teller::report {

/// How text output looks.
struct TextOptions {
  size_t width = 80;  ///< columns of the terminal
  bool color = false;
  bool all = false;  ///< no bound on findings and lists
};

/// Where the text of a Page::Field begins.
inline constexpr size_t kFieldColumn = 13;

enum class Ink { kPlain, kBold, kDim, kRed, kYellow, kGreen, kCyan };

/// Builds plain text for a terminal: labels in a column, paragraphs wrapped at the width, colour only when asked for.
/// Everything passed in is made printable here. Threads: confined.
class Page {
 public:
  explicit Page(const TextOptions& options) : options_(options) {}

  /// A word with colour around it, or the printable word itself.
  std::string Inked(Ink ink, std::string_view text) const;
  /// One line; `text` may hold Inked parts and is not cut.
  void Raw(std::string_view text);
  /// A blank line, never two in a row.
  void Gap();
  /// A heading on a line of its own.
  void Head(std::string_view text);
  /// `text` wrapped, every line indented.
  void Paragraph(size_t indent, std::string_view text, Ink ink = Ink::kPlain);
  /// "label   text"; the text is wrapped beside the label. An empty label continues the field above.
  void Field(std::string_view label, std::string_view text, Ink ink = Ink::kPlain);
  /// One line cut at the width.
  void Line(size_t indent, std::string_view text, Ink ink = Ink::kPlain);

  size_t width() const { return options_.width; }
  const TextOptions& options() const { return options_; }
  std::string Take() { return std::move(text_); }

 private:
  void Wrap(std::string first, size_t hang, std::string_view text, Ink ink);

  TextOptions options_;
  std::string text_;
};

}  // namespace teller::report
