// Package dnsapi is a client of the HTTP API of a DNS provider.
package dnsapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// Content is the content of a record, which the operator manages.
type Content struct {
	Name   string   `json:"name"`
	Type   string   `json:"type"`
	TTL    int32    `json:"ttl"`
	Values []string `json:"values"`
	// Owner is the UID of the object that the record belongs to; empty if it belongs to none.
	Owner string `json:"owner"`
	Label string `json:"label"`
}

// Equal compares all fields.
func (c Content) Equal(other Content) bool {
	return c.Name == other.Name && c.Type == other.Type && c.TTL == other.TTL &&
		slices.Equal(c.Values, other.Values) && c.Owner == other.Owner && c.Label == other.Label
}

// Record is a record as the provider stores it. Two creations give two records.
type Record struct {
	ID      string `json:"id"`
	Version uint64 `json:"version"`
	Content
}

// Client calls the HTTP API.
type Client struct {
	url  string
	http *http.Client
}

// New returns a client of the API at a URL. A call without an answer fails after the timeout.
func New(url string, timeout time.Duration) *Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = transport.MaxIdleConns
	return &Client{url: url, http: &http.Client{Timeout: timeout, Transport: transport}}
}

// WithName returns the records with a name.
func (c *Client) WithName(ctx context.Context, name string) (records []Record, err error) {
	return records, c.call(ctx, http.MethodGet, "/records?name="+url.QueryEscape(name), nil, 0, &records)
}

// OfOwner returns the records that belong to an object.
func (c *Client) OfOwner(ctx context.Context, uid string) (records []Record, err error) {
	return records, c.call(ctx, http.MethodGet, "/records?owner="+url.QueryEscape(uid), nil, 0, &records)
}

// Create creates a record.
func (c *Client) Create(ctx context.Context, content Content) (record Record, err error) {
	return record, c.call(ctx, http.MethodPost, "/records", content, 0, &record)
}

// Update replaces the content of a record, unless another client has changed it since it was read.
func (c *Client) Update(ctx context.Context, stored Record, content Content) (record Record, err error) {
	return record, c.call(ctx, http.MethodPut, "/records/"+stored.ID, content, stored.Version, &record)
}

// Delete deletes a record. One that does not exist is deleted already.
func (c *Client) Delete(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, "/records/"+id, nil, 0, nil)
}

func (c *Client) call(ctx context.Context, method, path string, content any, version uint64, result any) error {
	var body bytes.Buffer
	if content != nil {
		if err := json.NewEncoder(&body).Encode(content); err != nil {
			return err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, &body)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	if version != 0 {
		request.Header.Set("If-Match", strconv.FormatUint(version, 10))
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if method == http.MethodDelete && response.StatusCode == http.StatusNotFound {
		return nil
	}
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("the DNS API does not answer as expected: %s", response.Status)
	}
	if result == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(result)
}
