package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// FileQuery selects a file of a container.
type FileQuery struct {
	UID       string
	Container string // empty: the first container of the pod
	// Path is the path in the container. A relative path starts at the working directory of the container.
	Path string
}

func (q FileQuery) values() url.Values {
	v := url.Values{"path": {q.Path}}
	if q.UID != "" {
		v.Set("uid", q.UID)
	}
	if q.Container != "" {
		v.Set("container", q.Container)
	}
	return v
}

// StatFile returns the attributes of a file of a container. It follows symbolic links, which do not lead out of the container.
func (c *Client) StatFile(ctx context.Context, pod string, q FileQuery) (stat FileStat, err error) {
	return stat, c.call(ctx, http.MethodGet, podPath(pod)+"/files/stat", q.values(), nil, &stat)
}

// ReadFiles writes a file or a directory of a container to w, as a tar stream. The names in it start with the last element of the path or,
// for a path that ends with "/.", with the names in the directory. The container wrote the content: use the names with care, see os.Root.
// After an error, the stream is incomplete. ReadFiles blocks while w does, up to a limit of the server.
func (c *Client) ReadFiles(ctx context.Context, pod string, q FileQuery, w io.Writer) (result CopyResult, err error) {
	return c.readArchive(ctx, podPath(pod)+"/files", q.values(), w)
}

// readArchive writes the tar stream of a response to w.
func (c *Client) readArchive(ctx context.Context, path string, v url.Values, w io.Writer) (result CopyResult, err error) {
	r, err := c.do(ctx, http.MethodGet, path, v, nil)
	if err != nil {
		return result, c.unavailable(ctx, err)
	}
	defer r.Body.Close()
	if r.StatusCode >= http.StatusMultipleChoices {
		return result, c.readError(ctx, r)
	}
	body := &source{Reader: r.Body}
	if result.Bytes, err = io.Copy(w, body); err != nil {
		if body.err == nil {
			return result, err // of w
		}
		return result, c.unavailable(ctx, err)
	}
	text := r.Trailer.Get(CopyTrailer)
	if text == "" {
		return result, fmt.Errorf("%w: the copy is incomplete", ErrUnavailable)
	}
	var end CopyEnd
	if err := json.Unmarshal([]byte(text), &end); err != nil {
		return result, fmt.Errorf("read end of copy: %w", err)
	}
	result.Warnings = end.Warnings
	if end.Error != nil {
		return result, end.Error
	}
	return result, nil
}

// source remembers the error of a reader.
type source struct {
	io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// WriteFiles creates files of a container from a tar stream, in the directory of the query, which must exist. With preserve, owners,
// permissions and times of the stream are kept; otherwise the files belong to the user of the container. After an error, the files before
// it exist, and each of them is complete. WriteFiles may return before the end of the stream.
func (c *Client) WriteFiles(ctx context.Context, pod string, q FileQuery, preserve bool, stream io.Reader) (result CopyResult, err error) {
	v := q.values()
	if !preserve {
		v.Set("preserve", "false")
	}
	return c.writeArchive(ctx, podPath(pod)+"/files", v, stream)
}

// writeArchive sends a tar stream. It may return before the end of the stream.
func (c *Client) writeArchive(ctx context.Context, path string, v url.Values, stream io.Reader) (result CopyResult, err error) {
	u := url.URL{Scheme: "http", Host: "podstead", Path: path, RawQuery: v.Encode()}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	body := &source{Reader: stream}
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, u.String(), body)
	if err != nil {
		return result, err
	}
	r.Header.Set("User-Agent", c.agent)
	r.Header.Set("Content-Type", TarContent)
	resp, err := c.http.Do(r)
	if err != nil {
		if body.err != nil {
			return result, body.err
		}
		return result, c.unavailable(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusMultipleChoices {
		return result, c.readError(ctx, resp)
	}
	return result, c.unavailable(ctx, json.NewDecoder(resp.Body).Decode(&result))
}
