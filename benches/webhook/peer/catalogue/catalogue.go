// Package catalogue has what RDS offers: engine versions, instance classes, storage bounds and upgrade targets.
package catalogue

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// Catalogue is about all regions, or about one account and region.
type Catalogue struct {
	Origin  Origin             `json:"origin"`
	Engines map[string]*Engine `json:"engines"`
}

// Origin of the data.
type Origin struct {
	Source  string `json:"source"`
	Account string `json:"account"`
	Region  string `json:"region"`
}

// Engine has the offers of an engine, and an index of them by version.
type Engine struct {
	// Date is the day of the data, such as 2026-11-26.
	Date     string             `json:"date"`
	Versions map[string]Version `json:"versions"`
	// Offers are the sets of classes with which versions are offered.
	Offers [][]ClassOffer `json:"offers"`
	// Regions have the classes that they offer.
	Regions map[string]ClassSet `json:"regions"`

	names    []string
	all      *MatchingVersions
	byPrefix map[string]*MatchingVersions
}

// Version of an engine.
type Version struct {
	// Deprecated is true if RDS creates no new instances with the version.
	Deprecated bool `json:"deprecated"`
	// MinorUpgrades and MajorUpgrades are the versions, separated by spaces, to which an instance can be upgraded. Nil
	// if they are unknown.
	MinorUpgrades *string `json:"minorUpgrades"`
	MajorUpgrades *string `json:"majorUpgrades"`
	// Offer is the index of the set of classes. Nil if it is unknown.
	Offer *int `json:"offer"`
}

// ClassOffer has classes with the same storage and capabilities.
type ClassOffer struct {
	Classes ClassSet `json:"classes"`
	// Storage by its type. Nil if it is unknown.
	Storage map[string]StorageOffer `json:"storage"`
	// Capabilities, such as multiAz. Nil if they are unknown.
	Capabilities []string `json:"capabilities"`
}

// StorageOffer has the bounds of a storage type. One that is nil is unknown.
type StorageOffer struct {
	SizeGib           *Bounds `json:"sizeGib"`
	Iops              *Bounds `json:"iops"`
	IopsPerGib        *Bounds `json:"iopsPerGib"`
	ThroughputMibps   *Bounds `json:"throughputMibps"`
	ThroughputPerIops *Bounds `json:"throughputPerIops"`
	Autoscaling       bool    `json:"autoscaling"`
}

// Read reads a catalogue from a file.
func Read(path string) (*Catalogue, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	catalogue, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return catalogue, nil
}

// Parse reads a catalogue from its text.
func Parse(text []byte) (*Catalogue, error) {
	catalogue := &Catalogue{}
	if err := json.Unmarshal(text, catalogue); err != nil {
		return nil, err
	}
	for name, engine := range catalogue.Engines {
		for version, offered := range engine.Versions {
			if offered.Offer != nil && *offered.Offer >= len(engine.Offers) {
				return nil, fmt.Errorf("the classes of %s %s are missing", name, version)
			}
		}
		engine.index()
	}
	return catalogue, nil
}

// OfferOf returns the classes with which a version is offered, if they are known.
func (e *Engine) OfferOf(version Version) ([]ClassOffer, bool) {
	if version.Offer == nil {
		return nil, false
	}
	return e.Offers[*version.Offer], true
}

// HasClass returns true if any version is offered with a class, or any region has it.
func (e *Engine) HasClass(class string) bool {
	for _, offer := range e.Offers {
		if HaveClass(offer, class) {
			return true
		}
	}
	return e.HasClassInRegions(class)
}

// HasClassInRegions returns true if any region has a class.
func (e *Engine) HasClassInRegions(class string) bool {
	for _, classes := range e.Regions {
		if classes.Contains(class) {
			return true
		}
	}
	return false
}

// HaveClass returns true if one of the offers has a class.
func HaveClass(offers []ClassOffer, class string) bool {
	for _, offer := range offers {
		if offer.Classes.Contains(class) {
			return true
		}
	}
	return false
}

// Targets returns the versions to which an instance can be upgraded, if they are known.
func (v Version) Targets() ([]string, bool) {
	var targets []string
	for _, upgrades := range []*string{v.MinorUpgrades, v.MajorUpgrades} {
		if upgrades != nil {
			targets = append(targets, strings.Fields(*upgrades)...)
		}
	}
	return targets, v.MinorUpgrades != nil || v.MajorUpgrades != nil
}
