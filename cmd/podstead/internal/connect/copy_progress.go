package connect

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/podstead/podstead/supervisor/explain"
)

// clearLine moves the cursor of a terminal to the first column, and erases the line (ECMA-48: EL).
const clearLine = "\r\x1b[K"

// ShowProgress shows on a terminal how much was copied, after the first second. The returned function removes the line.
func (c *Copy) ShowProgress(ctx context.Context, w io.Writer) (done func()) {
	ctx, cancel := context.WithCancel(ctx)
	var drawing sync.WaitGroup
	drawing.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		drawn := false
		for {
			select {
			case <-tick.C:
				_, _ = fmt.Fprint(w, clearLine+"Copied "+explain.Size(c.Transferred()))
				drawn = true
			case <-ctx.Done():
				if drawn {
					_, _ = io.WriteString(w, clearLine)
				}
				return
			}
		}
	})
	return func() {
		cancel()
		drawing.Wait()
	}
}
