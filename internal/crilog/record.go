package crilog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"
)

// This file has the record of a [Feed] and its meaning. It does no I/O.
//
// The record is saved before each write of the log. It has the state before and after the write. After a kill, the size of the log tells
// which of them is true. SIGKILL does not cut a system call that writes within a page of a tmpfs, so a record is old or new, never mixed.

const (
	recordMagic   = "PSFEED"
	recordVersion = 1

	// maxCause bounds the text of an error in a record, in bytes.
	maxCause = 128
)

// recordHeader precedes a record. Integers are little-endian.
type recordHeader struct {
	Magic   [6]byte
	Version uint16
	Length  uint32 // of the rest
	Sum     uint32 // CRC-32 (Castagnoli) of the rest
}

// feedRecord is what a feed must know after a kill.
type feedRecord struct {
	Before feedState
	// Write is the write that is being made, zero if there is none. After is the state when it is complete, in which nothing is lost.
	Write feedWrite
	After feedState
	// Cause is the error for which lines are lost in Before.
	Cause string
}

// fixedRecord is the part of a record that has a fixed size.
type fixedRecord struct {
	Before feedState
	Write  feedWrite
	After  feedState
}

// feedState is the state of a log between two writes.
type feedState struct {
	Streams [2]streamState
	Total   Count
	Counted bool
	Lost    lostState
	Bucket  bucketState
	// Damaged is the number of bytes of output, plus 1, that a notice must report as missing since a record was damaged. 0 is none.
	Damaged int64
}

// streamState is the state of one stream.
type streamState struct {
	Read    int64 // bytes of the spool that are in the log, or that are dropped or lost
	Parts   int32 // entries of the line that is not complete
	Dropped bool  // the rest of the line is dropped
	Unended bool  // the last entry is a part of a line
}

// lostState is a [loss] without its cause. Times are in nanoseconds since 1970, 0 is no time.
type lostState struct{ Lines, Bytes, Since int64 }

// bucketState is a [bucket].
type bucketState struct {
	Tokens             float64
	At, Dropped, Begun int64
}

// feedWrite is a write to the end of a file.
type feedWrite struct {
	Device, Inode uint64
	Start, Length int64 // size of the file before the write, bytes to be written
	At            int64 // time stamp of the entries
}

// outcome is what became of a write that was being made when the process was killed.
type outcome int

const (
	unwritten outcome = iota // nothing of it is in the log
	written                  // all of it is
	torn                     // a part of it is
)

// outcome decides by the size of the file, negative if it is not a part of the log any more. A file that is shorter than before the write
// was truncated by somebody, and what was written with it.
func (w feedWrite) outcome(size int64) outcome {
	switch {
	case w.Length == 0 || size <= w.Start:
		return unwritten
	case size-w.Start >= w.Length:
		return written
	}
	return torn
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errRecordDamaged = errors.New("record is damaged")

// encode returns the bytes of the record.
func (r *feedRecord) encode() ([]byte, error) {
	fixed := fixedRecord{r.Before, r.Write, r.After}
	h := recordHeader{Version: recordVersion}
	copy(h.Magic[:], recordMagic)
	start := binary.Size(h)
	b := make([]byte, start, 512)
	b, err := binary.Append(b, binary.LittleEndian, &fixed)
	if err != nil {
		return nil, err
	}
	b = append(b, r.Cause[:min(len(r.Cause), maxCause)]...)
	h.Length, h.Sum = uint32(len(b)-start), crc32.Checksum(b[start:], castagnoli)
	_, err = binary.Encode(b, binary.LittleEndian, &h)
	return b, err
}

// decodeRecord decodes a record. The error is errRecordDamaged, or names a version that is not supported.
func decodeRecord(b []byte) (r feedRecord, err error) {
	var h recordHeader
	n, err := binary.Decode(b, binary.LittleEndian, &h)
	if err != nil || string(h.Magic[:]) != recordMagic {
		return r, errRecordDamaged
	}
	if b = b[n:]; int64(h.Length) > int64(len(b)) || crc32.Checksum(b[:h.Length], castagnoli) != h.Sum {
		return r, errRecordDamaged
	}
	if h.Version != recordVersion {
		return r, fmt.Errorf("version %d of the record is not supported, want %d", h.Version, recordVersion)
	}
	var fixed fixedRecord
	b = b[:h.Length] // the rest is of a longer record before
	if n, err = binary.Decode(b, binary.LittleEndian, &fixed); err != nil || len(b)-n > maxCause {
		return r, errRecordDamaged
	}
	r = feedRecord{fixed.Before, fixed.Write, fixed.After, string(b[n:])}
	for _, s := range []*feedState{&r.Before, &r.After} {
		if !s.valid() {
			return feedRecord{}, errRecordDamaged
		}
	}
	if w := r.Write; w.Start < 0 || w.Length < 0 {
		return feedRecord{}, errRecordDamaged
	}
	return r, nil
}

func (s *feedState) valid() bool {
	for _, t := range s.Streams {
		if t.Read < 0 || t.Parts < 0 {
			return false
		}
	}
	b := s.Bucket
	return s.Total.Lines >= 0 && s.Total.Bytes >= 0 && s.Lost.Lines >= 0 && s.Lost.Bytes >= 0 && b.Dropped >= 0 && s.Damaged >= 0 &&
		b.Tokens == b.Tokens // not a number
}

func unixNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func fromUnixNano(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n)
}

func (b bucket) state() bucketState {
	return bucketState{Tokens: b.tokens, At: unixNano(b.at), Dropped: b.dropped, Begun: unixNano(b.begun)}
}

func (s bucketState) bucket() bucket {
	return bucket{tokens: s.Tokens, at: fromUnixNano(s.At), dropped: s.Dropped, begun: fromUnixNano(s.Begun)}
}
