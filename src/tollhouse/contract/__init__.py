"""The public interface as types and operations. Every change here changes the interface."""
