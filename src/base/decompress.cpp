#include "base/decompress.hpp"

#include <algorithm>
#include <cstring>
#include <string>

namespace teller::base {

namespace {

/// Gives back the bytes that were looked at, then the rest.
class Peeked : public ByteSource {
 public:
  Peeked(std::string head, std::unique_ptr<ByteSource> rest) : head_(std::move(head)), rest_(std::move(rest)) {}

  Result<size_t> Read(char* into, size_t n) override {
    const size_t take = std::min(n, head_.size() - at_);
    if (take > 0) std::memcpy(into, head_.data() + at_, take);
    at_ += take;
    if (take == n) return take;
    auto more = rest_->Read(into + take, n - take);
    if (!more) return more.error();
    return take + *more;
  }
  std::string_view damage() const override { return rest_->damage(); }
  uint64_t consumed() const override { return rest_->consumed(); }

 private:
  std::string head_;
  std::unique_ptr<ByteSource> rest_;
  size_t at_ = 0;
};

}  // namespace

Compression CompressionOf(std::string_view head) {
  if (head.substr(0, 2) == "\x1f\x8b") return Compression::kGzip;
  if (head.substr(0, 4) == "\x28\xb5\x2f\xfd") return Compression::kZstd;
  // A frame to be skipped stands in front of the data of some parallel compressors.
  const bool skippable =
      head.size() >= 4 && (static_cast<unsigned char>(head[0]) & 0xF0) == 0x50 && head.substr(1, 3) == "\x2a\x4d\x18";
  return skippable ? Compression::kZstd : Compression::kNone;
}

Result<std::unique_ptr<ByteSource>> Decompressed(std::unique_ptr<ByteSource> raw) {
  std::string head(4, '\0');
  auto got = raw->Read(head.data(), head.size());
  if (!got) return got.error();
  head.resize(*got);
  const Compression compression = CompressionOf(head);
  std::unique_ptr<ByteSource> whole = std::make_unique<Peeked>(std::move(head), std::move(raw));
  switch (compression) {
    case Compression::kGzip: return Gunzip(std::move(whole));
    case Compression::kZstd: return Unzstd(std::move(whole));
    case Compression::kNone: break;
  }
  return whole;
}

}  // namespace teller::base
