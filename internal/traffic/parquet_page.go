package traffic

import (
	"errors"
	"fmt"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

var errPageSize = errors.New("it is larger than it says when it is decompressed")

// checkPage checks that a page is not larger than it says when it is decompressed. The library
// decompresses whatever comes, so a small page could fill the memory; and of LZ4 it takes each
// error for a lack of room, and doubles that.
func checkPage(page *io.SectionReader, codec format.CompressionCodec, h *format.PageHeader) error {
	size := int64(h.UncompressedPageSize)
	if v2 := &h.DataPageHeaderV2; h.Type == format.DataPageV2 {
		// The levels before the values are not compressed.
		levels := int64(v2.V.RepetitionLevelsByteLength) + int64(v2.V.DefinitionLevelsByteLength)
		if levels < 0 || levels > page.Size() || levels > size {
			return fmt.Errorf("levels of %d bytes do not fit", levels)
		}
		if v2.V.IsCompressed.Valid && !v2.V.IsCompressed.V {
			return nil
		}
		page, size = io.NewSectionReader(page, levels, page.Size()-levels), size-levels
	}
	if page.Size() == 0 {
		return nil
	}
	switch codec {
	case format.Snappy:
		return checkSnappy(page, size)
	case format.Gzip:
		r, err := gzip.NewReader(page)
		if err != nil {
			return err
		}
		return checkStream(r, size)
	case format.Zstd:
		r, err := zstd.NewReader(page, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxPage), zstd.WithDecoderMaxMemory(maxPage))
		if err != nil {
			return err
		}
		defer r.Close()
		return checkStream(r, size)
	case format.Brotli:
		return checkStream(brotli.NewReader(page), size)
	case format.Lz4Raw:
		return checkLZ4(page, size)
	}
	return nil
}

// checkStream reads all that a stream has, and keeps nothing of it.
func checkStream(r io.Reader, size int64) error {
	n, err := io.Copy(io.Discard, io.LimitReader(r, size+1))
	if n > size {
		return errPageSize
	}
	return err
}

// checkSnappy checks the length with which a block begins.
func checkSnappy(page *io.SectionReader, size int64) error {
	head := make([]byte, min(page.Size(), 10))
	if _, err := page.ReadAt(head, 0); err != nil {
		return err
	}
	n, err := s2.DecodedLen(head)
	if err == nil && int64(n) > size {
		err = errPageSize
	}
	return err
}

// checkLZ4 decompresses a block, which does not say how large it is.
func checkLZ4(page *io.SectionReader, size int64) error {
	if page.Size() > maxPage {
		return fmt.Errorf("%d bytes are more than %d MiB", page.Size(), maxPage>>20)
	}
	b := make([]byte, page.Size())
	if _, err := io.ReadFull(page, b); err != nil {
		return err
	}
	if _, err := lz4.UncompressBlock(b, make([]byte, size)); err != nil {
		return errPageSize
	}
	return nil
}
