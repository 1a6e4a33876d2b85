package image

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
)

// reads are the archives that are being imported, so that all callers that wait for an import can report its progress. The zero value is
// usable.
type reads struct {
	mu       sync.Mutex
	archives map[string]*read // by prefix of records
}

// read is the progress of one import.
type read struct {
	done  atomic.Int64 // bytes of the file
	total int64
}

// progress is the progress as it is reported. A file may grow while it is read.
func (c *read) progress() Progress {
	return Progress{Bytes: min(c.done.Load(), c.total), TotalBytes: c.total}
}

// begin counts what is read from r, the file of an archive, until end is called. The end of the file may not have been read by then.
func (s *reads) begin(r io.Reader, a archive) (counted io.Reader, end func(success bool)) {
	c := &read{total: a.size}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.archives == nil {
		s.archives = map[string]*read{}
	}
	s.archives[a.records] = c
	counted = readerFunc(func(b []byte) (int, error) {
		n, err := r.Read(b)
		c.done.Add(int64(n))
		return n, err
	})
	return counted, func(success bool) {
		if success {
			c.done.Store(c.total)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.archives, a.records)
	}
}

// watch calls report, unless it is nil, at intervals while the archive is being imported. If it was called, stop calls it with the final
// progress, and waits for that.
func (s *reads) watch(ctx context.Context, records string, report func(Progress)) (stop func()) {
	if report == nil {
		return func() {}
	}
	var reported *read
	end := atIntervals(ctx, func(context.Context) {
		s.mu.Lock()
		c := s.archives[records]
		s.mu.Unlock()
		if c != nil {
			report(c.progress())
			reported = c
		}
	})
	return func() {
		if end(); reported != nil {
			report(reported.progress())
		}
	}
}
