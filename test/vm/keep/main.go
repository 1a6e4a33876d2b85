// Command keep gives the daemon of a machine a pod that belongs to no client: it lives until it is deleted. `podstead run` ends its
// pods when it has not found a daemon for half a minute, which an emulated machine beside other work may take to start one.
//
//	keep FILE
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/podstead/podstead/api"
)

const (
	socket  = "/run/podstead/podstead.sock"
	timeout = time.Minute
)

func main() {
	if err := keep(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "keep:", err)
		os.Exit(1)
	}
}

func keep(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want a pod file, got %q", args)
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	client := api.NewClient(socket, "keep")
	defer client.Close()
	_, err = client.Create(ctx, api.CreateRequest{File: args[0], Text: string(text)})
	return err
}
