package suite

import (
	"flag"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"time"
)

// slotPoll is the interval in which a slot is looked for.
const slotPoll = 50 * time.Millisecond

// acquire waits for one of the slots that all packages of a go test share, and returns the function that releases it. A slot is an abstract
// socket, so it is free when its process exits.
func acquire() (release func()) {
	for {
		if release, ok := tryAcquire(); ok {
			return release
		}
		<-time.After(slotPoll)
	}
}

func tryAcquire() (release func(), ok bool) {
	for i := range slots() {
		if l, err := net.Listen("unix", fmt.Sprintf("@podstead-test-%d-%d", os.Getppid(), i)); err == nil {
			return func() { _ = l.Close() }, true
		}
	}
	return nil, false
}

// slots returns the value of -parallel, or three for each processor if it is not set.
func slots() int {
	n := 3 * runtime.NumCPU()
	flag.Visit(func(f *flag.Flag) {
		if set, err := strconv.Atoi(f.Value.String()); err == nil && f.Name == "test.parallel" {
			n = set
		}
	})
	return n
}
