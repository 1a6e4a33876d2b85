package volume

import "context"

// Check returns why volumes of a pod could not be set up on this host at present, as [Set.Readable] does. It needs no directories.
func Check(ctx context.Context, values Values, hostPaths []string, p Pod) error {
	return (&Set{values: values, opts: Options{HostPaths: hostPaths}}).Readable(ctx, p)
}
