package main

import (
	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/debug"
)

// debugImage returns the image of a debug container that names none.
func (a *app) debugImage(cmd *cobra.Command, client *api.Client) (string, error) {
	c, err := a.config(cmd)
	if err != nil {
		return "", err
	}
	return debug.FindImage(cmd.Context(), client, c.Images.Dir, c.Images.SystemDir)
}
