package supervisor

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Clock reads the time. It is called once a turn of a loop.
type Clock func() lifecycle.Instant

// SystemClock returns the clock of this boot of the machine: CLOCK_BOOTTIME, which goes on through suspend and knows of
// no leaps, and the wall clock beside it.
func SystemClock() (Clock, error) {
	raw, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil, fmt.Errorf("read boot ID: %w", err)
	}
	boot := strings.TrimSpace(string(raw))
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return nil, fmt.Errorf("read CLOCK_BOOTTIME: %w", err)
	}
	return func() lifecycle.Instant {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
			panic(fmt.Sprintf("CLOCK_BOOTTIME worked before: %v", err))
		}
		return lifecycle.Instant{Boot: boot, Mono: time.Duration(ts.Nano()), Wall: time.Now()}
	}, nil
}
