// Command agent is the one program of ours in the machine of test/vm. As process 1 of the initramfs it mounts the root file system and
// hands over to systemd, which starts it again as a service that runs the commands of the host. It must not know what it runs.
package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

func main() {
	if os.Getpid() == 1 {
		err := boot()
		fmt.Println("agent:", err)
		<-time.After(time.Second) // for the console
		powerOff()
	}
	if err := serve(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}
