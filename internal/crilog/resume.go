package crilog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// This file takes a [Feed] from rest, which is the same as after a kill, and back. The state at rest is in the record only.

// recordPath is the record of the feed. It exists before the spools do.
func (f *Feed) recordPath() string { return filepath.Join(f.dir, "log.record") }

// load finds what an earlier process has left in the directory.
func (f *Feed) load() error {
	for _, s := range []Stream{Stdout, Stderr} {
		spool := &f.spools[s.index()]
		spool.fd = -1
		var stat unix.Stat_t
		err := unix.Lstat(f.spoolPath(s), &stat)
		if err == nil {
			err = checkRegular(&stat)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &fs.PathError{Op: "open", Path: f.spoolPath(s), Err: err}
		}
		spool.size = stat.Size
		spool.unread = int32(min(stat.Size, stat.Blocks*512, maxSpool)) // at most, until the record says it
	}
	r, err := f.readRecord()
	if err != nil {
		return err
	}
	for i := range f.spools {
		spool := &f.spools[i]
		spool.unread = int32(spool.size - r.Before.Streams[i].Read)
		spool.unseen = spool.unread
	}
	return nil
}

// readRecord reads the record, or makes one if there is none or if it is damaged.
func (f *Feed) readRecord() (feedRecord, error) {
	var r feedRecord
	b, err := os.ReadFile(f.recordPath())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(b) == 0 && f.spools[0].size == 0 && f.spools[1].size == 0 { // new
		return r, f.replaceRecord(&r)
	}
	r, err = decodeRecord(b)
	for i := range f.spools {
		if left := f.spools[i].size - r.Before.Streams[i].Read; err == nil && (left < 0 || left > maxSpool) {
			err = errRecordDamaged // or a spool is
		}
	}
	if !errors.Is(err, errRecordDamaged) {
		if err != nil {
			err = fmt.Errorf("%s: %w", f.recordPath(), err)
		}
		return r, err
	}
	r = feedRecord{Before: feedState{Damaged: 1}}
	for i, spool := range f.spools {
		r.Before.Streams[i].Read = spool.size
		r.Before.Damaged += int64(spool.unread)
	}
	return r, f.replaceRecord(&r)
}

// replaceRecord writes a record into a new file, complete or not at all. Later ones are written in place, into the same page of memory.
func (f *Feed) replaceRecord(r *feedRecord) error {
	b, err := r.encode()
	if err != nil {
		return err
	}
	temporary := f.recordPath() + ".new"
	if err := os.WriteFile(temporary, b, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, f.recordPath())
}

// wake returns the writer. If the feed is at rest, it finishes what a kill may have interrupted, and continues as the record says.
func (f *Feed) wake() (*feedWriter, error) {
	f.mu.Lock()
	closed, stale := f.closed, f.stale
	f.mu.Unlock()
	if closed {
		return nil, fmt.Errorf("write log %q: %w", f.path, os.ErrClosed)
	}
	if f.w != nil {
		f.w.at = time.Now()
		return f.w, nil
	}
	r, err := f.readRecord()
	if err != nil {
		return nil, fmt.Errorf("write log %q: %w", f.path, err)
	}
	state := r.Before
	w := &feedWriter{writer: newWriter(f.path, f.opt), record: f.recordPath(), fd: -1, saved: state, cause: r.Cause, at: time.Now()}
	f.w = w
	w.sink, w.ledger = f.sink, w
	w.now = func() time.Time { return w.at }
	if w.during = r.Write.Length > 0; w.during {
		for _, s := range []Stream{Stdout, Stderr} {
			if read := r.After.Streams[s.index()].Read; read > state.Streams[s.index()].Read {
				w.again = again{s, read, time.Unix(0, r.Write.At)}
			}
		}
		o, err := w.interrupted(r.Write)
		if err != nil {
			return nil, f.fail(err)
		}
		if o == written {
			state, w.again = r.After, again{}
		}
	}
	w.restore(state, r.Cause, func(during time.Duration) { f.noticeDue(w, during) })
	if stale = stale || w.damaged > 0; stale {
		w.refresh()
	}
	if w.again.until == 0 { // otherwise the record stays as it is until the write is repeated
		w.settle()
	}
	if err := w.failed; err != nil {
		return nil, f.fail(err)
	}
	if err := f.advance(w, stale); err != nil {
		return nil, f.fail(err)
	}
	return w, nil
}

// advance sets the spools to where the log is. It also frees what a kill may have left.
func (f *Feed) advance(w *feedWriter, free bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range []Stream{Stdout, Stderr} {
		spool, read := &f.spools[s.index()], w.outs[s.index()].read
		spool.setRead(read, read)
		if free && read > 0 {
			if err := errors.Join(spool.open(f.spoolPath(s)), spool.punch(0)); err != nil {
				return err
			}
		}
	}
	return nil
}

// refresh does what is done once in the life of a process.
func (w *feedWriter) refresh() {
	w.mu.Lock()
	if !w.counted {
		_ = w.open() // the first write reports the error in the log
	} else if w.opt.Compress {
		_ = w.resumeCompression() // else the next rotation tries again
	}
	w.mu.Unlock()
	if w.damaged > 0 {
		lost := w.damaged - 1
		w.damaged = 0
		w.report(fmt.Sprintf("podstead: the record of the log was damaged, up to %d bytes of output before this line are lost", lost))
	}
}

// interrupted finds out what became of a write. One that was cut is undone, or continued when its bytes are made again.
func (w *feedWriter) interrupted(write feedWrite) (outcome, error) {
	dir, err := openDirectory(filepath.Dir(w.path), false)
	if err != nil {
		return unwritten, temporary(err)
	}
	defer dir.close()
	for i := range w.opt.Keep {
		file, err := dir.open(rotated(filepath.Base(w.path), i), os.O_RDWR|os.O_APPEND)
		if err := temporary(err); err != nil {
			return unwritten, err
		}
		if err != nil {
			continue
		}
		id, err := identify(file)
		if err == nil && id != (fileID{write.Device, write.Inode}) {
			_ = file.Close()
			continue
		}
		var size int64
		if err == nil {
			size, err = file.Seek(0, io.SeekEnd)
		}
		o := write.outcome(size)
		switch {
		case err != nil || o != torn:
		case w.again.until > 0 && i == 0:
			w.file, w.size, w.torn = file, write.Start, tornWrite{size - write.Start, write.Length}
			return o, nil
		default:
			err = file.Truncate(write.Start)
		}
		return o, errors.Join(err, file.Close())
	}
	return write.outcome(-1), nil
}

// temporary returns an error that says nothing about the log, nil if it says that the log is not there.
func temporary(err error) error {
	for _, cause := range []error{unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EIO, unix.EINTR, unix.ETIMEDOUT, unix.ESTALE} {
		if errors.Is(err, cause) {
			return err
		}
	}
	return nil
}

// restore sets the state.
func (w *feedWriter) restore(s feedState, cause string, due func(during time.Duration)) {
	w.progress = progress{total: s.Total, counted: s.Counted}
	if lost := s.Lost; lost.Lines > 0 {
		w.lost = loss{int(lost.Lines), int(lost.Bytes), fromUnixNano(lost.Since), errors.New(cause)}
	}
	for i, t := range s.Streams {
		w.unended[i] = t.Unended
		w.outs[i] = batch{stream: Stdout, counter: lineCounter{int(t.Parts)}, dropped: t.Dropped, read: t.Read}
	}
	w.outs[Stderr.index()].stream = Stderr
	w.damaged = s.Damaged
	l := w.limit
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bucket, l.due = s.Bucket.bucket(), due
	if l.dropped > 0 {
		l.await(min(max(noticeInterval-w.at.Sub(l.begun), 0), noticeInterval))
	}
}

// state returns the state for this progress.
func (w *feedWriter) state(p progress) feedState {
	s := feedState{Total: p.total, Counted: p.counted, Damaged: w.damaged}
	s.Lost = lostState{int64(p.lost.lines), int64(p.lost.bytes), unixNano(p.lost.since)}
	for i, out := range w.outs {
		s.Streams[i] = streamState{Read: out.read, Parts: int32(out.counter.parts), Dropped: out.dropped, Unended: p.unended[i]}
	}
	if l := w.limit; l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		s.Bucket = l.state()
	}
	return s
}

// intend implements [ledger].
func (w *feedWriter) intend(next progress, b []byte) (written int, err error) {
	if w.failed != nil {
		return 0, w.failed
	}
	if t := w.torn; t.written > 0 {
		w.torn = tornWrite{}
		found := make([]byte, t.written)
		_, err := w.file.ReadAt(found, w.size)
		if err == nil && int64(len(b)) == t.length && bytes.HasPrefix(b, found) {
			return len(found), nil // the record has this write
		}
		if err := w.file.Truncate(w.size); err != nil {
			return 0, err
		}
	}
	id, err := identify(w.file)
	if err != nil {
		return 0, err
	}
	stat, err := w.file.Stat()
	if err != nil {
		return 0, err
	}
	w.during = true
	w.failed = w.save(&feedRecord{
		Before: w.saved,
		Write:  feedWrite{Device: id.dev, Inode: id.ino, Start: stat.Size(), Length: int64(len(b)), At: w.at.UnixNano()},
		After:  w.state(next),
		Cause:  w.cause,
	})
	return 0, w.failed
}

// settle implements [ledger]: it saves the state.
func (w *feedWriter) settle() {
	s := w.state(w.progress)
	if w.failed != nil || s == w.saved && !w.during {
		return
	}
	w.cause = ""
	if w.lost.lines > 0 {
		w.cause = w.lost.cause.Error()
	}
	if w.failed = w.save(&feedRecord{Before: s, Cause: w.cause}); w.failed == nil {
		w.saved, w.during = s, false
	}
}

// save writes the record. The file exists, and its memory is allocated.
func (w *feedWriter) save(r *feedRecord) error {
	b, err := r.encode()
	if err != nil {
		return err
	}
	if w.fd < 0 {
		w.fd, err = retry(func() (int, error) { return unix.Open(w.record, unix.O_WRONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0) })
		if err != nil {
			return &fs.PathError{Op: "open", Path: w.record, Err: err}
		}
	}
	if _, err := retry(func() (int, error) { return unix.Pwrite(w.fd, b, 0) }); err != nil {
		return &fs.PathError{Op: "write", Path: w.record, Err: err}
	}
	return nil
}

// close closes the files. The record has the state.
func (w *feedWriter) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.closeFile()
	if w.fd >= 0 {
		_ = unix.Close(w.fd)
		w.fd = -1
	}
}

// busy reports whether something waits for a time, or uses the files of the log.
func (w *feedWriter) busy() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.compression != nil {
		return true
	}
	if w.limit == nil {
		return false
	}
	w.limit.mu.Lock()
	defer w.limit.mu.Unlock()
	return w.limit.end != nil
}

// noticeDue reports lines that the rate limit has dropped, some time after the first of them.
func (f *Feed) noticeDue(w *feedWriter, during time.Duration) {
	f.work.Lock()
	defer f.work.Unlock()
	if f.w != w {
		return // a later writer has what is to be reported
	}
	w.at = time.Now()
	w.limit.notice(during)
	w.settle()
	if w.failed != nil {
		f.forget()
		return
	}
	f.rest()
}

// reportDropped reports lines that the rate limit has dropped until now.
func (f *Feed) reportDropped(w *feedWriter) error {
	if w.limit == nil {
		return nil
	}
	w.limit.notice(w.limit.cancel(w.at))
	if w.settle(); w.failed != nil {
		return f.fail(w.failed)
	}
	return nil
}

// rest closes all files, and drops the writer unless it is busy.
func (f *Feed) rest() {
	f.w.close()
	if !f.w.busy() {
		f.w = nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stale = false
	for i := range f.spools {
		if f.spools[i].unseen == 0 {
			f.spools[i].close()
		}
	}
}

// fail forgets what is not in the record after an error.
func (f *Feed) fail(err error) error {
	f.forget()
	return fmt.Errorf("write log %q: %w", f.path, err)
}

// forget drops the writer, as a kill does.
func (f *Feed) forget() {
	f.mu.Lock()
	f.stale = true
	f.mu.Unlock()
	w := f.w
	if w == nil {
		return
	}
	f.w = nil
	if w.limit != nil {
		w.limit.cancel(w.at)
	}
	w.stopCompression()
	w.close()
}
