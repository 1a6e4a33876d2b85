package daemon

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/podstead/podstead/internal/atomicfile"
	"github.com/podstead/podstead/internal/proc"
)

const (
	// bootFile is the file in the state directory that has the boot ID of the host while a daemon runs.
	bootFile = "booted"
	// bootTimeout bounds how long the end of the daemon waits for the disk that has the file.
	bootTimeout = 5 * time.Second
)

// bootMark shows the next daemon whether the boot ended without a shutdown of the host: the file is removed when the daemon exits or
// learns of the shutdown, and is durable before that. A daemon that was killed leaves it to the next one of the same boot.
type bootMark struct {
	file    string
	current string
	log     *slog.Logger
	written chan struct{}
	removed chan struct{}
	remove  sync.Once
}

// readBoot returns the mark, and the ID of the earlier boot that ended without a shutdown; empty: none is known. Errors are only logged:
// nothing is known then.
func readBoot(ctx context.Context, dir string, log *slog.Logger) (b *bootMark, unclean string) {
	b = &bootMark{file: filepath.Join(dir, bootFile), log: log, written: make(chan struct{}), removed: make(chan struct{})}
	text, err := os.ReadFile(b.file)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	current, bootErr := proc.BootID()
	if err = errors.Join(err, bootErr); err != nil {
		b.report(ctx, err)
	}
	if last := strings.TrimSpace(string(text)); last != current && bootErr == nil {
		unclean = last
	}
	b.current = current
	return b, unclean
}

// rebooted reports whether a pod that stayed unready has rebooted the host in a boot, by a command that may not shut it down.
func rebooted(dir, boot string) bool {
	record, err := LoadReboots(filepath.Join(dir, RebootsFile))
	return err == nil && slices.ContainsFunc(record.Reboots, func(r Reboot) bool { return r.Boot == boot })
}

// set writes the file in the background: no pod waits for the disk. The returned function removes it.
func (b *bootMark) set(ctx context.Context) (unset func()) {
	ctx = context.WithoutCancel(ctx)
	go func() {
		defer close(b.written)
		if b.current == "" {
			return
		}
		if err := atomicfile.Write(b.file, []byte(b.current+"\n"), 0o600); err != nil {
			b.report(ctx, err)
		}
	}()
	return func() {
		b.clear(ctx)
		select {
		case <-b.removed:
		case <-time.After(bootTimeout):
			b.report(ctx, errors.New("the disk does not respond"))
		}
	}
}

// clear begins to remove the file, once. It does not wait for the disk.
func (b *bootMark) clear(ctx context.Context) {
	b.remove.Do(func() {
		go func() {
			defer close(b.removed)
			<-b.written
			if err := atomicfile.Remove(b.file); err != nil {
				b.report(ctx, err)
			}
		}()
	})
}

func (b *bootMark) report(ctx context.Context, err error) {
	const message = "a shutdown of the host may be taken for a power loss, or a power loss for a shutdown"
	b.log.LogAttrs(ctx, slog.LevelWarn, message, slog.Any("error", err))
}
