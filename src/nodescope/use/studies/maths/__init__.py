"""The mathematics under the studies: plain functions on arrays."""
