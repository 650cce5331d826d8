#include "ingest/common/unpack.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/decompress.hpp"
#include "ingest/common/tar.hpp"

namespace teller::ingest {

namespace {

using base::DiagnosticKind;
using base::Severity;

constexpr DiagnosticKind kDamagedArchive = {"input.archive_damaged", Severity::kDataLoss,
                                            "an archive is damaged or cut off; only what stands before was read"};
constexpr DiagnosticKind kBehind = {"input.archive_behind", Severity::kNotice,
                                    "data behind the end of an archive is no archive; it was not read"};
constexpr DiagnosticKind kLinks = {
    "input.archive_links", Severity::kNotice,
    "links in an archive are not followed; what they point to is read when it is in there too"};
constexpr DiagnosticKind kSpecial = {"input.archive_special", Severity::kNotice,
                                     "devices, pipes and sparse files in an archive are not read"};
constexpr DiagnosticKind kOverwritten = {"input.archive_overwritten", Severity::kNotice,
                                         "an archive holds a name several times; the last one was read"};

/// The front of a file after decompression; empty when it cannot be read.
std::string Head(const std::string& path) {
  auto source = base::OpenFile(path);
  if (!source) return {};
  std::string head(kTarBlock, '\0');
  auto got = (*source)->Read(head.data(), head.size());
  head.resize(got ? *got : 0);
  return head;
}

bool IsCompressed(const std::string& path) {
  auto source = base::OpenRaw(path);
  char head[4] = {};
  if (!source) return false;
  auto got = (*source)->Read(head, sizeof head);
  return got && base::CompressionOf({head, *got}) != base::Compression::kNone;
}

}  // namespace

base::Result<Found> Unpacker::ReadStandardInput(bool as_log) {
  auto spool = base::Spool::OfDescriptor(STDIN_FILENO);
  if (!spool) return spool.error();
  kept_.push_back(std::move(*spool));
  Found found{kept_.back().path(), "(standard input)", true, as_log};
  found.name = "stdin";
  return found;
}

/// The archive itself, or a decompressed copy; `damage` is that of the compression.
base::Result<std::string> Unpacker::PathOfArchive(const Found& found, std::string& damage) {
  if (!IsCompressed(found.path)) return found.path;
  auto source = base::OpenFile(found.path);
  if (!source) return source.error();
  auto spool = base::Spool::Of(**source);
  if (!spool) return spool.error();
  damage = (*source)->damage();
  kept_.push_back(std::move(*spool));
  return kept_.back().path();
}

std::vector<Found> Unpacker::Unpack(Found found, trace::Store& store) {
  if (!found.special.empty() || found.as_log || !LooksLikeTar(Head(found.path))) return {std::move(found)};
  const auto report = [&](const DiagnosticKind& kind, const std::string& what, uint64_t count) {
    if (count > 0) store.diagnostics.Report(kind, {}, found.shown + (what.empty() ? "" : ": " + what), count);
  };
  std::string compression;
  auto path = PathOfArchive(found, compression);
  auto source = path ? base::OpenRaw(*path) : base::Result<std::unique_ptr<base::ByteSource>>(path.error());
  auto index = source ? ReadTarIndex(**source) : base::Result<TarIndex>(source.error());
  std::string damage = index ? index->damage : index.error().Text();
  if (!compression.empty()) damage += (damage.empty() ? "" : "; ") + compression;
  report(kDamagedArchive, damage, damage.empty() ? 0 : 1);
  if (!damage.empty() && !damage_) damage_ = base::Error{base::Code::kBadFormat, damage, found.shown};
  if (!index) return {};
  report(kBehind, "from byte " + std::to_string(index->behind), index->behind > 0 ? 1 : 0);
  report(kLinks, {}, index->links);
  report(kSpecial, {}, index->special);
  report(kOverwritten, {}, index->overwritten);
  // As a folder is listed: what is found must not depend on the order in which it was packed.
  std::sort(index->members.begin(), index->members.end(),
            [](const TarMember& a, const TarMember& b) { return a.name < b.name; });
  std::vector<Found> out;
  for (const TarMember& member : index->members) {
    Found inside{base::FileRegion(*path, member.offset, member.size), found.shown + "!" + member.name, false, false};
    inside.name = found.path.substr(0, found.path.find('\0')) + "!/" + member.name;
    out.push_back(std::move(inside));
  }
  return out;
}

}  // namespace teller::ingest
