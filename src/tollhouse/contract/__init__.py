"""The specification as types. A change in this folder is a change of the public interface."""
