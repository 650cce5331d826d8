#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace teller::base {

/// Zeroed memory straight from the system, on huge pages where it grants them; given back to the system when destroyed.
/// First touch of small pages costs more than parsing what is then written there, hence huge pages and reuse.
/// Errors: throws std::bad_alloc, as every allocation does.
class PageBuffer {
 public:
  PageBuffer() = default;
  explicit PageBuffer(size_t bytes);
  PageBuffer(PageBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  PageBuffer& operator=(PageBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~PageBuffer();

  char* data() { return data_; }
  const char* data() const { return data_; }
  size_t size() const { return size_; }
  /// Makes room for at least `bytes`; the first `keep` bytes stay.
  void Grow(size_t bytes, size_t keep);

 private:
  char* data_ = nullptr;
  size_t size_ = 0;
};

/// Asks for huge pages under memory that was reserved but not yet touched. Does nothing for small ranges.
void AdviseHugePages(void* data, size_t bytes);

/// Hands out pieces of chunks. A chunk goes back to the system when every piece of it is gone.
/// Threads: Allocate is confined; pieces may be released on any thread.
class ChunkArena {
 public:
  /// Memory of at least `bytes`, aligned to 64.
  std::shared_ptr<char> Allocate(size_t bytes);

 private:
  std::shared_ptr<PageBuffer> chunk_;
  size_t used_ = 0;
};

}  // namespace teller::base
