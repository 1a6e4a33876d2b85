// Command keep creates pods without an owner in the daemon of a virtual machine: they run until they are deleted. The pods of `podstead
// run` are stopped if it finds no daemon for half a minute, and a loaded emulated machine may take longer to start one.
//
//	keep FILE...
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
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
	if len(args) == 0 {
		return errors.New("usage: keep FILE [FILE]")
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	c := client.New(socket, "keep")
	defer c.Close()
	for _, file := range args {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if _, err := c.Create(ctx, api.CreateRequest{File: file, Text: string(text)}); err != nil {
			return fmt.Errorf("keep %s: %w", file, err)
		}
	}
	return nil
}
