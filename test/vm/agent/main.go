// Command agent runs commands of the host in the virtual machine of test/vm. As process 1 of the initramfs it mounts the root file
// system and executes systemd, which starts it again as a service. It must not depend on the commands.
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
		<-time.After(time.Second) // flush the console
		powerOff()
	}
	if err := serve(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}
